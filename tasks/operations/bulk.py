"""A verb for all executions that a filter chooses: stop, retry, resume, refresh or delete.

It is an execution of the type BULK itself: a chain of jobs, each of which does the verb for a range of ids. So its
progress, its stop and its retry are those of any execution. The jobs run one after another, so that an action
takes one process of the workers. They wait in the queue of the ticks: no backlog of other jobs is before them
there, it cannot be paused, and a project has a worker for it.

Each job hands on what was done so far, with the executions that the database refused. The last job tries these
once more, and fails if some are refused again. So a refused execution does not hold up the others, and a retry of
the action tries those that failed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from celery import current_app
from celery.canvas import _chain
from django.db import transaction

from harbor_refresh.executions.access.audit import Kind, Person, note
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import RefreshError, Refused, TooManyActions
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import BULK, highest_id, ranges
from harbor_refresh.executions.queries.filters import MAX_IDS, Filter
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.jobs.execution import TrackedExecution
from harbor_refresh.tasks.jobs.running.handle import Handle
from harbor_refresh.tasks.jobs.running.kept_ends import results_of
from harbor_refresh.tasks.jobs.starting.start import start
from harbor_refresh.tasks.operations.bulk_verbs import Done, walk

#: Each has one message in the queue of the ticks, and no tick is sent while four messages wait there (tick.py).
MAX_OPEN = 4
#: How often a job may begin.
ATTEMPTS = 5
#: What a job hands on: how many executions were changed, skipped and refused, the first ids of the refused ones,
#: and the reason of the first.
Totals = dict[str, Any]
NOTHING: Totals = {"changed": 0, "skipped": 0, "failed": 0, "ids": [], "error": ""}
#: What stands in the way of a verb while this service is attached to a Harbor.
OPERATIONS = {
    Verb.STOP: Operation.STOP,
    Verb.RETRY: Operation.RUN_AGAIN,
    Verb.RESUME: Operation.RUN_AGAIN,
    Verb.DELETE: Operation.DELETE,
    Verb.REFRESH: Operation.REFRESH_MANY,
}


class SomeFailed(RefreshError):
    """Some executions failed."""


def ask(
    verb: Verb, chosen: Filter, person: Person, *, everything: bool = False, highest: int | None = None
) -> TrackedExecution:
    """Start the execution that does the verb; return it. It touches no execution that is created later, and no
    other execution of its type unless the filter names it. The entry in the log of actions commits with it.

    `everything`: the filter may be empty. `highest` is of a count that was shown before, so that only what was
    counted is touched.

    Raises OwnedByHarbor while attached, Refused for an empty filter, and TooManyActions if MAX_OPEN are open. Two
    callers at once may exceed that by one.
    """
    refuse_if_attached(OPERATIONS[verb])
    refuse_empty(chosen, everything=everything)
    if Execution.objects.filter(vendor_type=BULK, end_time=None).count() >= MAX_OPEN:
        raise TooManyActions(f"{MAX_OPEN} actions are open; wait until one has ended, or stop one")
    given, what = chosen.as_json(), chosen.as_text() or "all"
    one = current_app.tasks["tasks.act_on_many"]
    found: list[Any] = [*ranges(chosen, highest_id() if highest is None else highest), None]
    steps = [one.s(NOTHING, verb, given, found[0]), *(one.s(verb, given, ids) for ids in found[1:])]
    with transaction.atomic():
        attributes = {"verb": verb, "filter": given, "by": person.name, "from": person.origin}
        execution = start(BULK, jobs=[_chain(*steps)], extra_attrs=attributes)
        note(person, verb, Kind.MANY, execution.pk, detail=what)
    return execution


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
    now = _walk(job, left, verb, Filter(ids=failed), (min(failed) - 1, max(failed)))
    if now and now["failed"]:
        count = plural(now["failed"], "execution")
        raise SomeFailed(f"{count} failed, the first of them: {now['error'] or so_far['error']}")
    return now


def _walk(job: Handle, so_far: Totals, verb: str, chosen: Filter, ids: Sequence[int]) -> Totals | None:
    """None: it was asked to stop. If its process has died here, then each execution is done alone, so that those
    before the cause are done; and the last check-in names the place."""
    alone = job.given.may_begin - job.run.number < ATTEMPTS - 1
    done = Done()
    for cursor, one in walk(verb, chosen, *ids, alone=alone):
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
