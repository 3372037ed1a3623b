"""What `manage.py refresh_jobs` can do, one verb a module (management/family.py)."""
