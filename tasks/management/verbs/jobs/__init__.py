"""What the verbs of `manage.py harbor` do about jobs."""
