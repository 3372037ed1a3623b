"""A verb for all executions that a filter chooses: stop, retry, resume, refresh or delete.

An action is an execution of the type BULK: a chain of jobs, each of which does the verb for a range of ids. So its
progress, its stop and its retry are those of any execution. The jobs run one after another, so that an action
takes one process of the workers. They wait in the queue of the ticks: no backlog of other jobs is before them
there, it cannot be paused, and a project has a worker for it.

Each job hands on what was done so far, with the executions that the database refused. The last job tries these
once more, and fails if some are refused again. So a refused execution does not hold up the others, and a retry of
the action tries those that failed. Each verb is idempotent, so a job may come again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from celery import current_app
from celery.canvas import _chain
from django.db import DatabaseError, transaction
from django.db.models import Count, Exists, OuterRef, Q

from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import absence_translated, first_line, in_halves, set_limit, sized_pages
from harbor_refresh.executions.errors import Contended, NoSuchExecution, RefreshError, Refused, TooManyActions
from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Gate, Link, Task
from harbor_refresh.executions.news.after_commit import tell_touched_after_commit
from harbor_refresh.executions.news.audit import Person, Target, Word, note
from harbor_refresh.executions.queries.chosen_pages import BULK, highest_id, page_after, ranges
from harbor_refresh.executions.queries.filters import MAX_IDS, Filter
from harbor_refresh.executions.status import FINAL_CODE, Status
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.running.handle import Handle
from harbor_refresh.tasks.jobs.running.kept_ends import results_of
from harbor_refresh.tasks.jobs.starting.canvas import parts_of
from harbor_refresh.tasks.jobs.starting.job_rows import start_or_find
from harbor_refresh.tasks.jobs.stops import stop_jobs_of
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.queue.connection import absence_remembered
from harbor_refresh.tasks.sql import run


@dataclass
class Done:
    """What was done with some executions. `failed`: those that the database refused, and why."""

    changed: int = 0
    skipped: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.changed + self.skipped + len(self.failed)

    def __iadd__(self, other: Self) -> Self:
        self.changed += other.changed
        self.skipped += other.skipped
        self.failed |= other.failed
        return self


@dataclass(frozen=True)
class BulkVerb:
    """`act` works on a portion of a page: executions whose weights are `heaviest` in sum, so a transaction holds
    its locks for a short time. A heavier execution is a portion by itself. `did` is what was done, for people.
    `operation` is what a Harbor to which this service is attached does itself."""

    did: str
    operation: Operation
    act: Callable[[Sequence[int]], Done]
    weights: Callable[[Sequence[int]], Mapping[int, int]]
    page: int
    heaviest: int


def done_of(changed: int, ids: Sequence[int], failed: dict[int, str] | None = None) -> Done:
    failed = failed or {}
    return Done(changed, len(ids) - changed - len(failed), failed)


def _run_again(use_case: Callable[[int], int], kind: Q, ids: Sequence[int]) -> Done:
    changed = 0
    for pk in _with_tasks(kind, ids):
        with suppress(NoSuchExecution):  # it was deleted meanwhile
            changed += use_case(pk) > 0
    return done_of(changed, ids)


def _refresh(ids: Sequence[int]) -> Done:
    """Refresh now. Rows that another transaction holds are marked and not waited for; so are rows that cannot be
    refreshed, which the queue tries again, and sets aside in the end."""
    outcome = refresh(ids, wait=False)
    later = Execution.objects.filter(pk__in=[*outcome.locked, *outcome.failed])
    tell_touched_after_commit(later.values_list("pk", "vendor_type"))
    return done_of(outcome.changed, ids, outcome.failed)


def _tasks(ids: Sequence[int]) -> Mapping[int, int]:
    """Weigh each execution by its tasks, from the index task_rollup alone."""
    tasks = Task.objects.filter(execution_id__in=ids).order_by().values_list("execution_id")
    return dict(tasks.annotate(Count("pk")))


#: The tasks that no other runner reports: those of jobs, of gates of open executions, and of children. A child
#: that has failed, or still runs, may have stopped jobs as well. Only its Success excludes failed and stopped
#: ones.
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


def _stop(ids: Sequence[int]) -> Done:
    return done_of(len(stop_jobs_of(ids).executions), ids)


def _delete(ids: Sequence[int]) -> Done:
    return done_of(len(delete_many_ended(ids)), ids)


# one execution with failed or stopped jobs in a transaction: running them again locks tasks of other executions
# that hold unique keys, so several executions in one transaction would not lock in the usual order
AGAIN = partial(BulkVerb, operation=Operation.RUN_AGAIN, page=500, heaviest=1)
VERBS: Mapping[str, BulkVerb] = {
    Word.STOP: BulkVerb("stopped", Operation.STOP, _stop, _tasks, page=500, heaviest=20_000),
    Word.RETRY: AGAIN(
        "retried",
        act=lambda ids: _run_again(retry_failed, FAILED, ids),
        weights=partial(_with_tasks, FAILED),
    ),
    Word.RESUME: AGAIN(
        "resumed",
        act=lambda ids: _run_again(resume_stopped, STOPPED, ids),
        weights=partial(_with_tasks, STOPPED),
    ),
    Word.REFRESH: BulkVerb("refreshed", Operation.REFRESH_MANY, _refresh, _tasks, page=1_000, heaviest=100_000),
    Word.DELETE: BulkVerb("deleted", Operation.DELETE, _delete, _tasks, page=200, heaviest=20_000),
}


def walk(name: str, chosen: Filter, after: int, up_to: int) -> Iterator[tuple[int, Done]]:
    """Do the verb for the chosen executions with ids in `(after, up_to]`, in the order of their ids. Yields, after
    each commit, the last id of it and what was done.

    If the process dies, then the portion in progress is rolled back. If the database is down: DatabaseDown.
    """
    verb = VERBS[name]
    while after < up_to:
        ids, cursor = page_after(after, chosen, highest=up_to, size=verb.page)
        weights = verb.weights(ids)
        for portion in sized_pages(((pk, weights.get(pk, 0)) for pk in ids), verb.heaviest):
            for part, result in in_halves(partial(_commit, verb), portion, (DatabaseError, Contended)):
                done = result if isinstance(result, Done) else Done(failed={part[0]: first_line(result)})
                if done.failed:
                    signals.bulk_refused.send(sender=walk, verb=name, reasons=done.failed)
                yield part[-1], done
        after = cursor


def _commit(verb: BulkVerb, ids: Sequence[int]) -> Done:
    """Act in one transaction. Several executions wait only briefly for a locked row, because their own locks are
    held meanwhile."""
    with absence_remembered(), transaction.atomic():
        if len(ids) > 1:
            set_limit("lock_timeout", "200ms")
        return verb.act(ids)


#: Each has one message in the queue of the ticks.
MAX_OPEN = 4
#: How often a job may begin.
ATTEMPTS = 5
#: What a job hands on: how many executions were changed, skipped and refused, the first ids of the refused ones,
#: and the reason of the first.
Totals = dict[str, Any]
NOTHING: Totals = {"changed": 0, "skipped": 0, "failed": 0, "ids": [], "error": ""}


class SomeFailed(RefreshError):
    """Some executions failed."""


def ask(
    verb: Word, chosen: Filter, person: Person, *, everything: bool = False, highest: int | None = None
) -> TrackedExecution:
    """Start the execution that does the verb; return it. It touches no execution that is created later, and no
    other execution of its type unless the filter names it. The entry in the log of actions commits with it.

    `everything`: the filter may be empty. `highest` is of a count that was shown before, so that only what was
    counted is touched.

    Raises OwnedByHarbor while attached, Refused for an empty filter, and TooManyActions if MAX_OPEN are open.
    """
    refuse_if_attached(VERBS[verb].operation)
    refuse_empty(chosen, everything=everything)
    given, what = chosen.as_json(), chosen.as_text() or "all"
    one = current_app.tasks["tasks.act_on_many"]
    found: list[Any] = [*ranges(chosen, highest_id() if highest is None else highest), None]
    steps = [one.s(NOTHING, verb, given, found[0]), *(one.s(verb, given, ids) for ids in found[1:])]
    with transaction.atomic():
        run("hold_actions")
        if Execution.objects.filter(vendor_type=BULK, end_time=None).count() >= MAX_OPEN:
            raise TooManyActions(f"{MAX_OPEN} actions are open; wait until one has ended, or stop one")
        attributes = {"verb": verb, "filter": given, "by": person.name, "from": person.origin}
        new = NewExecution(BULK, extra_attrs=attributes, is_action=True)
        execution, _ = start_or_find(new, parts_of([_chain(*steps)]))
        note(person, verb, Target.EXECUTIONS, execution.pk, detail=what)
    return TrackedExecution.objects.get(pk=execution.pk)


def refuse_empty(chosen: Filter, *, everything: bool) -> None:
    """Raise Refused for a filter without a condition, unless every execution is meant."""
    if chosen.is_empty and not everything:
        raise Refused("the filter is empty, so it chooses every execution; if that is meant, say so with `all`")


@absence_translated()
def act(job: Handle, so_far: Totals, verb: str, chosen: Any, ids: Any) -> Totals | None:
    """Do the verb for the chosen executions of the range `ids`; None: for those that failed. Returns what was done
    so far. Raises SomeFailed if some have failed twice, so that a retry of this job tries them again."""
    if ids:
        return _walk(job, so_far, verb, Filter.from_json(chosen), ids)
    if not (failed := so_far["ids"]):
        return so_far
    left = {**so_far, "failed": so_far["failed"] - len(failed), "ids": [], "error": ""}
    still = replace(Filter.from_json(chosen), ids=failed)  # they may have changed since the filter chose them
    now = _walk(job, left, verb, still, (min(failed) - 1, max(failed)))
    if now and now["failed"]:
        count = plural(now["failed"], "execution")
        raise SomeFailed(f"{count} failed, the first of them: {now['error'] or so_far['error']}")
    return now


def _walk(job: Handle, so_far: Totals, verb: str, chosen: Filter, ids: Sequence[int]) -> Totals | None:
    """None: it was asked to stop."""
    done = Done()
    for cursor, one in walk(verb, chosen, *ids):
        done += one
        job.check_in(f"up to execution {cursor}: {done.changed:,} changed")
        if job.should_stop():
            return None
    return {
        "changed": so_far["changed"] + done.changed,
        "skipped": so_far["skipped"] + done.skipped,
        "failed": so_far["failed"] + len(done.failed),
        "ids": [*so_far["ids"], *done.failed][:MAX_IDS],
        "error": so_far["error"] or first_of(done.failed),
    }


def first_of(failed: Mapping[int, str]) -> str:
    return next((f"execution {pk}: {why}" for pk, why in failed.items()), "")


def totals_of(execution_id: int) -> Totals | None:
    """Return what the jobs of this execution have done; None if it does no verb for many, or no job has ended."""
    ended = results_of(execution_id).filter(job__task__vendor_type=BULK).order_by("-pk").first()
    return ended.result if ended else None
