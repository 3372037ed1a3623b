"""Search by exact values for which there is an index: an id, a vendor, a vendor id that is text, a job, an
attribute. And the bounds of a list: the rows that a filter or a search has not looked at, shown below the list."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.text import smart_split

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Task, VendorKey
from harbor_refresh.executions.queries.lookups import find_by_attribute
from harbor_refresh.executions.status import MAX_ID

MAX_VENDORS = 200
#: The most executions that one word finds as the id of a job or as a vendor id.
MAX_FOUND = 1_000
#: The most look-ups by attribute of one search.
MAX_ATTRIBUTES = 3


def add_bound(request: HttpRequest, sentence: str) -> None:
    """Show this sentence below the list. A sentence that is added twice is shown once."""
    said = bounds(request)
    if sentence not in said:
        said.append(sentence)


def bounds(request: HttpRequest) -> list[str]:
    said: list[str] = request.__dict__.setdefault("bounds_of_the_list", [])
    return said


def vendors() -> list[str]:
    return [row[0] for row in run("vendors", most=MAX_VENDORS)]


def parse_id(word: str) -> int | None:
    """The word as an id, or None if it cannot be an id."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None


def among(ids: Sequence[int]) -> Q:
    """Match the rows with these ids. They are bound as one value, because thousands of them are slow to adapt."""
    literal = "{" + ",".join(map(str, ids)) + "}"
    return Q(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [literal]))


def executions_named(word: str) -> set[int]:
    """The ids of executions with this id, with a job of this id, or with this vendor id, if that is text. If there
    are more than MAX_FOUND, it returns more than MAX_FOUND, and not all."""
    of_jobs = Task.objects.filter(job_id=word).values_list("execution_id", flat=True)[: MAX_FOUND + 1]
    of_keys = VendorKey.objects.filter(key=word).order_by("-pk").values_list("pk", flat=True)[: MAX_FOUND + 1]
    pk = parse_id(word)
    return {*of_jobs.union(of_keys, all=True), *([] if pk is None else [pk])}


def executions_matching(text: str, request: HttpRequest) -> Q:
    """Match executions for which every word is the id, a part of the vendor's name, the id of a job, a vendor id
    that is text, or `path=value` with a value of the attributes. Quotes hold a value with blanks together.

    Jobs, keys, vendors and attributes are looked up first, so that the query on the table filters by indexed
    columns only.
    """
    condition = Q()
    known: list[str] | None = None
    attributes = 0
    for word in smart_split(text):
        path, is_attribute, value = word.partition("=")
        if is_attribute and path:
            attributes += 1
            condition &= _by_attribute(path, unquoted(value), request) if attributes <= MAX_ATTRIBUTES else _none()
            continue
        known = vendors() if known is None else known
        named = [vendor for vendor in known if word.lower() in vendor.lower()]
        ids = executions_named(word)
        if len(ids) > MAX_FOUND:
            add_bound(request, f"Very many executions are of {word}: the filter by vendor id finds all of them.")
        condition &= Q(pk__in=ids) | Q(vendor_type__in=named)
    return condition


def _by_attribute(path: str, value: str, request: HttpRequest) -> Q:
    try:
        found = find_by_attribute(path, value)
    except Refused as exc:
        add_bound(request, f"{exc}.")
        return _none()
    if not found.is_complete:
        add_bound(request, f"Very many executions have {path}={value}: {len(found.ids):,} of them are listed.")
    return among(found.ids)


def _none() -> Q:
    return Q(pk__in=[])


def unquoted(value: Any) -> str:
    """Return the text without the quotes around it, if there are any."""
    text = str(value)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
