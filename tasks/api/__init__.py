"""The HTTP API of this app: what needs the queue or the jobs. The service mounts it (web/api.py)."""
