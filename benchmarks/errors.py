"""The one error of this package."""


class BenchError(Exception):
    """The bench cannot begin or continue. The text is all that is shown, so it names the cause and the remedy."""
