"""What `manage.py refresh_queue` can do, one verb a module (management/family.py). `refresh_jobs`: jobs/."""
