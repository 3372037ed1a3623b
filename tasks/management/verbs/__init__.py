"""The verbs of `manage.py refresh_queue`, one a module. Those of `refresh_jobs` are in jobs/."""
