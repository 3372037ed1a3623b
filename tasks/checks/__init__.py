"""What is wrong with a project or a running service: `manage.py check` and `harbor check`."""
