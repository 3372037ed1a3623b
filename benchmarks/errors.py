"""The one error of this package."""


class BenchError(Exception):
    """The bench cannot begin or go on; the text is the one line a person reads."""
