"""The one error of this package."""


class LocalError(Exception):
    """Something a person has to act on; the text says what happened, what it means, what to do."""
