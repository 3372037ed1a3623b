"""Selections: the executions that a caller named, by whether their jobs can be stopped or tried again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.lookups import IsNull

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.models import Execution, Link
from harbor_refresh.executions.status import is_final
from harbor_refresh.tasks.models.job import Job


@dataclass(frozen=True)
class Selection:
    """The named executions, in four lists. Each list is in order."""

    going: Sequence[int]
    ended: Sequence[int]
    without_jobs: Sequence[int]
    unknown: Sequence[int]


def select(execution_ids: Sequence[int]) -> Selection:
    ids = sorted(set(execution_ids))
    statuses = dict(Execution.objects.filter(pk__in=ids).values_list("pk", "status"))
    with_jobs = set(executions_with_jobs(ids))
    return Selection(
        [pk for pk in ids if pk in with_jobs and not is_final(statuses[pk])],
        [pk for pk in ids if pk in with_jobs and is_final(statuses[pk])],
        [pk for pk in ids if pk in statuses and pk not in with_jobs],
        [pk for pk in ids if pk not in statuses],
    )


def for_each(execution_ids: Iterable[int], act: Callable[[int], int]) -> Iterator[tuple[int, int]]:
    """Act on these executions, one after the other, and yield what that returned. An execution that was deleted
    since it was selected is left out."""
    for pk in execution_ids:
        try:
            result = act(pk)
        except NoSuchExecution:
            continue
        yield pk, result


def has_jobs() -> Q:
    """The condition on executions that one of their tasks has a job, or that they have children, whose jobs are
    stopped and tried again with them. For each execution its tasks are looked at until one has a job: as a join,
    PostgreSQL may read all jobs and all tasks for a few executions."""
    first = Job.objects.filter(task__execution_id=OuterRef("pk")).values("pk")[:1]
    return Q(IsNull(Subquery(first), False)) | Q(Exists(Link.objects.filter(parent=OuterRef("pk"))))


def executions_with_jobs(execution_ids: Sequence[int]) -> list[int]:
    """Return those of the executions that have a job or a child. The query probes for one job of each."""
    there = Execution.objects.filter(has_jobs(), pk__in=execution_ids)
    return list(there.values_list("pk", flat=True))
