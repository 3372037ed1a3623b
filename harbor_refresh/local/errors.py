"""The error of this package."""


class LocalError(Exception):
    """A failure that a person has to act on. The text says what happened, what it means and what to do."""
