"""The HTTP API of this app, one router a noun; its tokens; Harbor's status hook. The service mounts them."""
