"""The verbs of `manage.py attach`, one a module."""
