"""Limits of tasks: what the code declares, the key of a job, and the row that an administrator may change.

    @app.task(base=TrackedJob, concurrency=10, rate="100/m", key=lambda job: job.kwargs["registry"])

The row of a limit is written with the first job. A worker that starts brings it up to date with its code, unless
an administrator has changed it. It holds back no job itself: sql/schema/admit_function.sql does, for the sender.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_text, is_whole, said_by, shown
from harbor_refresh.tasks.jobs.starting.options import Takes, refuse
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.models.terms import MAX_KEY, UNITS, Limit, LimitPace

MOST = 1_000_000
#: The page of the queue counts no further.
MOST_COUNTED = 10_000
RATE = re.compile(r"([1-9][0-9]{0,6})/([smhd])")
CONCURRENCY = Takes(f"a whole number from 1 to {MOST:,}", lambda value: is_whole(value, 1, MOST))
A_RATE = Takes(
    'text as "10/s", "100/m", "1000/h" or "5/d"',
    lambda value: isinstance(value, str) and bool(RATE.fullmatch(value)),
)


def is_limited(task: Any) -> bool:
    return getattr(task, "concurrency", None) is not None or getattr(task, "rate", None) is not None


def refuse_limit(task: Any) -> None:
    """Raise Refused if the limit that the task declares is none."""
    refuse(task.name, "concurrency", task.concurrency, CONCURRENCY)
    refuse(task.name, "rate", task.rate, A_RATE)
    refuse(task.name, "key", task.key, Takes("a function of the job", callable))
    if task.key is not None and not is_limited(task):
        raise Refused(f"{task.name}: key is that of a limit: write concurrency=... or rate=... as well")


def key_of_limit(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the key of a job in the limit of its task; None if the task has no limit."""
    if not is_limited(task):
        return None
    try:
        key = task.key and task.key(SimpleNamespace(args=args, kwargs=kwargs))
    except Exception as exc:
        raise Refused(f"job {task.name}: its key cannot be made: {said_by(exc)}") from exc
    key = "" if key is None else str(key)
    if not is_text(key, MAX_KEY):
        raise Refused(f"job {task.name}: key takes text of at most {MAX_KEY} characters, and got {shown(key)}")
    return key


def write_declared(names: Iterable[str] | None = None) -> None:
    """Write the limits of all tasks of this app as its code has them. `names`: only the rows of these that are not
    there. A row that is as it should be is not locked: the sender locks it for a moment."""
    tasks = current_app.tasks
    of = [name for name, task in tasks.items() if is_limited(task)] if names is None else names
    declared = {name: _declared(tasks[name]) for name in sorted(of) if name in tasks}
    rows = [Limit(name=name, declared=values, **values) for name, values in declared.items()]
    Limit.objects.bulk_create(rows, ignore_conflicts=True)
    for name, values in declared.items() if names is None else ():
        outdated = Limit.objects.filter(pk=name).exclude(declared=values)
        _set(name, outdated.filter(changed_by=""), declared=values, **values)
        outdated.exclude(changed_by="").update(declared=values)


def _declared(task: Any) -> dict[str, Any]:
    count, unit = RATE.fullmatch(task.rate).groups() if task.rate else (None, "m")  # type: ignore[union-attr]  # refuse_limit
    return {"concurrency": task.concurrency, "rate": count and int(count), "per": UNITS[unit]}


def change(name: str, values: Mapping[str, int | None], by: str) -> bool:
    """Have these values count from now on, whatever the code says. False if they do."""
    return _set(name, Limit.objects.filter(pk=name).exclude(**values), **values, changed_by=by)


def reset(name: str) -> bool:
    """Have what the code says count again. False if it does."""
    changed = Limit.objects.filter(pk=name).exclude(changed_by="")
    undeclared: dict[str, Any] = {"concurrency": None, "rate": None, "per": 60}
    with transaction.atomic():
        found = changed.select_for_update(no_key=True)
        return any(_set(name, changed, **undeclared | one.declared, changed_by="") for one in found)


def _set(name: str, rows: QuerySet[Limit], **values: Any) -> bool:
    """Write these values of a limit, if its row is among these; return whether it is. The next pass looks at it. A
    key that waits because of a slower rate then waits at most as long as one job of the new rate takes. The limit
    is locked before its paces, as by the sender."""
    with transaction.atomic():
        if not rows.update(**values, swept_at=Now() - timedelta(days=1)):
            return False
        limit = Limit.objects.get(pk=name)
        if limit.rate:
            soon = Now() + timedelta(seconds=limit.per / limit.rate)
            LimitPace.objects.filter(name=name, next_at__gt=soon).update(next_at=soon)
    return True


def _with_a_place() -> QuerySet[Job]:
    return Job.objects.filter(limit_key__isnull=False, admitted=True).exclude(state=JobState.ENDED)


def in_use() -> list[dict[str, Any]]:
    """Return each limit with how many jobs have a place in it, and how many wait for it, MOST_COUNTED at most."""
    with absence_translated():
        return [
            {
                "name": one.pk,
                "concurrency": one.concurrency,
                "rate": rate_text(one.rate, one.per),
                "admitted": _with_a_place().filter(name=one.pk)[:MOST_COUNTED].count(),
                "waiting": Job.in_line(name=one.pk, admitted=False)[:MOST_COUNTED].count(),
            }
            for one in Limit.objects.order_by("name")
        ]


def why_full(job: Job) -> str:
    """Say how far the limit or the rate of this job's key is used; empty if it lets the job run."""
    limit = Limit.objects.filter(pk=job.name).first()
    words = f"{job.name} {job.limit_key}" if job.limit_key else job.name
    taken = _with_a_place().filter(name=job.name, limit_key=job.limit_key).count()
    if limit and limit.concurrency is not None and taken >= limit.concurrency:
        return f"limit {words} {taken}/{limit.concurrency}"
    return f"rate {words} {rate_text(limit.rate, limit.per)}" if limit and limit.rate else ""


def rate_text(rate: int | None, per: int) -> str | None:
    units = {seconds: unit for unit, seconds in UNITS.items()}
    return None if rate is None else f"{rate}/{units.get(per) or f'{per} s'}"
