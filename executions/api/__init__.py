"""The HTTP API of this app, one router a noun, its tokens, and Harbor's status hook. The service mounts them
(harbor_refresh/api.py)."""
