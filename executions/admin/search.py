"""Search by exact values that an index answers: an id, a vendor, a job."""

from django.db.models import Q

from executions.database import run
from executions.models import Task
from executions.status import MAX_ID

MOST_VENDORS = 200
MOST_EXECUTIONS = 1_000


def vendors() -> list[str]:
    return [row[0] for row in run("vendors", most=MOST_VENDORS)]


def number(word: str) -> int | None:
    """The word as an id, if it can be one."""
    return int(word) if word.isdecimal() and len(word) <= 19 and int(word) <= MAX_ID else None


def executions_matching(text: str) -> Q:
    """Every word must match: the execution's id, a part of its vendor's name, or one of its jobs.

    Jobs and vendors are looked up first, so that the question to the table is about indexed columns
    and nothing else.
    """
    condition = Q()
    known = vendors()
    for word in text.split():
        jobs = Task.objects.filter(job_id=word).values_list("execution_id", flat=True)
        ids = set(jobs[:MOST_EXECUTIONS])
        if (pk := number(word)) is not None:
            ids.add(pk)
        named = [vendor for vendor in known if word.lower() in vendor.lower()]
        condition &= Q(pk__in=ids) | Q(vendor_type__in=named)
    return condition
