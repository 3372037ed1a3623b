"""What `manage.py refresh_queue` can do, one verb a module: HELP, arguments() and answer()."""
