"""The verbs of `manage.py refresh_jobs`, one a module."""
