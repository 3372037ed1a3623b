"""The verbs for many executions: what each does with a few, in one transaction, by the use cases for one; and the
walk of a verb through the executions that a filter chooses, which jobs and the commands share.

Each verb is idempotent, so executions whose transaction was lost are done again, and so is a job that comes again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from django.db import DatabaseError, transaction
from django.db.models import Count, Exists, OuterRef, Q

from harbor_refresh.executions.database import first_line, in_halves
from harbor_refresh.executions.errors import Contended, NoSuchExecution
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.executions.models import Execution, Gate, Link, Task
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.news.after_commit import tell_touched_after_commit
from harbor_refresh.executions.queries.chosen_pages import page_after
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.status import FINAL_CODE, Status
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.stops import stop_jobs_of
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.queue.connection import absence_remembered
from harbor_refresh.tasks.queue.sets import sized_pages


@dataclass(frozen=True)
class Done:
    """What was done with some executions. `failed`: those that the database refused, and why."""

    changed: int = 0
    skipped: int = 0
    failed: Mapping[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.changed + self.skipped + len(self.failed)

    def __add__(self, other: Self) -> "Done":
        return Done(self.changed + other.changed, self.skipped + other.skipped, {**self.failed, **other.failed})


@dataclass(frozen=True)
class BulkVerb:
    """`act` works on a portion of a page: executions whose weights are `heaviest` in sum, so a transaction holds
    its locks for a short time. A heavier execution is a portion by itself. `did` is what was done, for people."""

    did: str
    act: Callable[[Sequence[int]], Done]
    weights: Callable[[Sequence[int]], Mapping[int, int]]
    page: int
    heaviest: int


def _stop(ids: Sequence[int]) -> Done:
    changed = len(stop_jobs_of(ids).executions)
    return Done(changed, skipped=len(ids) - changed)


def _retry(ids: Sequence[int]) -> Done:
    return _run_again(retry_failed, _with_tasks(FAILED, ids), len(ids))


def _resume(ids: Sequence[int]) -> Done:
    return _run_again(resume_stopped, _with_tasks(STOPPED, ids), len(ids))


def _run_again(use_case: Callable[[int], int], execution_ids: Iterable[int], count: int) -> Done:
    changed = 0
    for pk in execution_ids:
        with suppress(NoSuchExecution):  # it was deleted meanwhile
            changed += use_case(pk) > 0
    return Done(changed, skipped=count - changed)


def _refresh(ids: Sequence[int]) -> Done:
    """Refresh now. Rows that another transaction holds are marked and not waited for; so are rows that cannot be
    refreshed, which the queue tries again, and sets aside in the end."""
    outcome = refresh(ids, wait=False)
    later = Execution.objects.filter(pk__in=[*outcome.locked, *outcome.failed])
    tell_touched_after_commit(later.values_list("pk", "vendor_type"))
    return done_of(outcome, len(ids))


def done_of(outcome: Refreshed, count: int) -> Done:
    return Done(outcome.changed, count - outcome.changed - len(outcome.failed), outcome.failed)


def _delete(ids: Sequence[int]) -> Done:
    changed = len(delete_many_ended(ids))
    return Done(changed, skipped=len(ids) - changed)


def _tasks(ids: Sequence[int]) -> Mapping[int, int]:
    """Weigh each execution by its tasks, from the index task_rollup alone."""
    tasks = Task.objects.filter(execution_id__in=ids).order_by().values_list("execution_id")
    return dict(tasks.annotate(Count("pk")))


#: Tasks of ours, and not of another runner: of a job, the gate of an open execution, and of a child. A child that
#: has failed, or still runs, may have stopped jobs as well. Only its Success excludes failed and stopped ones.
OF_A_JOB = Q(job__isnull=False)
A_GATE = Q(Exists(Gate.objects.filter(task_id=OuterRef("pk"))))
OF_A_CHILD = Q(Exists(Link.objects.filter(task_id=OuterRef("pk")))) & ~Q(status=Status.SUCCESS)
#: The tasks of which a retry, or a resumption, may have something to do in an execution or in its children.
FAILED = (Q(status=Status.ERROR, status_code=FINAL_CODE) & OF_A_JOB) | OF_A_CHILD
STOPPED = (Q(status=Status.STOPPED, status_code=FINAL_CODE) & (OF_A_JOB | A_GATE)) | OF_A_CHILD


def _with_tasks(kind: Q, ids: Sequence[int]) -> Mapping[int, int]:
    """Weigh each execution by whether it has a task of this kind."""
    tasks = Task.objects.filter(kind, execution_id__in=ids)
    found = tasks.order_by("execution_id").values_list("execution_id", flat=True).distinct()
    return dict.fromkeys(found, 1)


VERBS: Mapping[str, BulkVerb] = {
    Verb.STOP: BulkVerb("stopped", _stop, _tasks, page=500, heaviest=20_000),
    # one execution with failed or stopped jobs in a transaction: running them again locks tasks of other
    # executions that hold unique keys, so several executions in one transaction would not lock in the usual
    # order
    Verb.RETRY: BulkVerb("retried", _retry, partial(_with_tasks, FAILED), page=500, heaviest=1),
    Verb.RESUME: BulkVerb("resumed", _resume, partial(_with_tasks, STOPPED), page=500, heaviest=1),
    Verb.REFRESH: BulkVerb("refreshed", _refresh, _tasks, page=1_000, heaviest=100_000),
    Verb.DELETE: BulkVerb("deleted", _delete, _tasks, page=200, heaviest=20_000),
}


def walk(name: str, chosen: Filter, after: int, up_to: int, *, alone: bool = False) -> Iterator[tuple[int, Done]]:
    """Do the verb for the chosen executions with ids in `(after, up_to]`, in the order of their ids. Yields, after
    each commit, the last id of it and what was done. `alone`: each execution in a transaction by itself.

    If the process dies, then the portion in progress is rolled back. If the database is away: DatabaseAway.
    """
    verb = VERBS[name]
    while after < up_to:
        page = page_after(after, chosen, highest=up_to, size=verb.page)
        for portion in _portions(verb, page.ids, alone=alone):
            for part, result in in_halves(partial(_commit, verb), portion, (DatabaseError, Contended)):
                done = result if isinstance(result, Done) else Done(failed={part[0]: first_line(result)})
                if done.failed:
                    signals.bulk_refused.send(sender=walk, verb=name, reasons=done.failed)
                yield part[-1], done
        after = page.cursor


def _portions(verb: BulkVerb, ids: Sequence[int], *, alone: bool) -> Iterator[Sequence[int]]:
    if alone:
        return iter([pk] for pk in ids)
    weights = verb.weights(ids)
    return sized_pages(((pk, weights.get(pk, 0)) for pk in ids), verb.heaviest)


def _commit(verb: BulkVerb, ids: Sequence[int]) -> Done:
    """Act in one transaction. Several executions wait only briefly for a locked row, because their own locks are
    held meanwhile."""
    with absence_remembered(), transaction.atomic():
        if len(ids) > 1:
            run("wait_briefly")
        return verb.act(ids)
