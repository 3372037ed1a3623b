"""The bounds of a list: the rows that a filter or a search has not looked at, shown below the list."""

from django.http import HttpRequest


def add_bound(request: HttpRequest, sentence: str) -> None:
    """Show this sentence below the list. A sentence that is added twice is shown once."""
    said = bounds(request)
    if sentence not in said:
        said.append(sentence)


def bounds(request: HttpRequest) -> list[str]:
    said: list[str] = request.__dict__.setdefault("bounds_of_the_list", [])
    return said
