"""Search by exact values for which there is an index: an id, a vendor, a job."""

from django.db.models import Q

from executions.database import run
from executions.models import Task
from executions.status import MAX_ID

MAX_VENDORS = 200
MAX_FOUND_BY_JOB = 1_000


def vendors() -> list[str]:
    return [row[0] for row in run("vendors", most=MAX_VENDORS)]


def parse_id(word: str) -> int | None:
    """The word as an id, or None if it cannot be an id."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None


def executions_matching(text: str) -> Q:
    """Match executions for which every word is the id, a part of the vendor's name, or the id of a job.

    Jobs and vendors are looked up first, so that the query on the table filters by indexed columns only.
    """
    condition = Q()
    known = vendors()
    for word in text.split():
        jobs = Task.objects.filter(job_id=word).values_list("execution_id", flat=True)
        ids = set(jobs[:MAX_FOUND_BY_JOB])
        if (pk := parse_id(word)) is not None:
            ids.add(pk)
        named = [vendor for vendor in known if word.lower() in vendor.lower()]
        condition &= Q(pk__in=ids) | Q(vendor_type__in=named)
    return condition
