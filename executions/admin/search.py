"""Search by exact values for which there is an index: an id, a vendor, a job, an attribute."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.text import smart_split

from executions.admin.bounds import add_bound
from executions.database import run
from executions.errors import Refused
from executions.lookups import find_by_attribute
from executions.models import Task
from executions.status import MAX_ID

MAX_VENDORS = 200
MAX_FOUND_BY_JOB = 1_000
#: The most look-ups by attribute of one search.
MAX_ATTRIBUTES = 3


def vendors() -> list[str]:
    return [row[0] for row in run("vendors", most=MAX_VENDORS)]


def parse_id(word: str) -> int | None:
    """The word as an id, or None if it cannot be an id."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None


def among(ids: Sequence[int]) -> Q:
    """Match the rows with these ids. They are bound as one value, because thousands of them are slow to adapt."""
    literal = "{" + ",".join(map(str, ids)) + "}"
    return Q(pk__in=RawSQL("SELECT unnest(%s::bigint[])", [literal]))


def executions_matching(text: str, request: HttpRequest) -> Q:
    """Match executions for which every word is the id, a part of the vendor's name, the id of a job, or
    `path=value` with a value of the attributes. Quotes hold a value with blanks together.

    Jobs, vendors and attributes are looked up first, so that the query on the table filters by indexed columns
    only.
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
        jobs = Task.objects.filter(job_id=word).values_list("execution_id", flat=True)
        ids = set(jobs[:MAX_FOUND_BY_JOB])
        if (pk := parse_id(word)) is not None:
            ids.add(pk)
        named = [vendor for vendor in known if word.lower() in vendor.lower()]
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
