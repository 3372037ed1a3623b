"""`manage.py attach`. Its checks are in the registry of checks (tasks/checks), with Shown.ATTACH."""
