"""The verbs of `manage.py harbor` about executions, one a module."""
