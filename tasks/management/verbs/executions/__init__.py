"""The verbs of `manage.py executions`, one a module."""
