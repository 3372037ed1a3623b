"""The verbs of `manage.py harbor`."""
