"""The arguments that jobs have asked for are written into their rows (tasks/sql/write_arguments.sql)."""

import json
from collections.abc import Sequence

from django.db import transaction

from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.celery_json import as_json
from harbor_refresh.tasks.jobs.records.arguments import Request
from harbor_refresh.tasks.models.job import Job


def write_arguments(requests: Sequence[Request]) -> None:
    """Write what these jobs asked for, for each later message. A row with later arguments stays as it is."""
    if requests:
        run(
            "write_arguments",
            task_ids=[one.task_id for one in requests],
            jobs=[one.job for one in requests],
            revisions=[one.arguments.revision for one in requests],
            args=[json.dumps(as_json(one.arguments.args)) for one in requests],
            kwargs=[json.dumps(as_json(one.arguments.kwargs)) for one in requests],
        )


def write_free_arguments(requests: Sequence[Request], *, left: list[Request]) -> None:
    """Write those whose row no other transaction has locked; add the others to `left`. So recovery waits for none:
    a publication holds rows while it waits for the broker."""
    with transaction.atomic():
        rows = Job.objects.filter(pk__in=[one.task_id for one in requests])
        free = rows.order_by("pk").select_for_update(of=("self",), no_key=True, skip_locked=True)
        locked = set(rows.values_list("pk", flat=True)) - set(free.values_list("pk", flat=True))
        left += [one for one in requests if one.task_id in locked]
        write_arguments([one for one in requests if one.task_id not in locked])
