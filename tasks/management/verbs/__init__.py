"""The verbs of `manage.py harbor`, one a module."""
