"""The HTTP API of this app: one router a noun. The service mounts them (harbor_refresh/api.py)."""
