"""The admin in a real browser, against the service as `make up` runs it."""
