"""Ids that people type, and the bounds of a list: what it has not compared, shown below it."""

from django.http import HttpRequest

from harbor_refresh.executions.status import MAX_ID


def add_bound(request: HttpRequest, sentence: str) -> None:
    """Show this sentence below the list. A sentence that is added twice is shown once."""
    said = bounds(request)
    if sentence not in said:
        said.append(sentence)


def bounds(request: HttpRequest) -> list[str]:
    said: list[str] = request.__dict__.setdefault("bounds_of_the_list", [])
    return said


def parse_id(word: str) -> int | None:
    """The word as an id, or None if it cannot be an id."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None
