class Refused(Exception):
    """The wheel is not built, for these reasons, one a line."""
