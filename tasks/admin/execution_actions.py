"""The actions on executions that were chosen in the list or on a page, and the messages that they show.

Each execution has a transaction of its own, with its entries in the logs. Work done before an error stays done.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Outcome, Word
from harbor_refresh.executions.admin.audit import note_row, noted
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import (
    Contended,
    DatabaseAway,
    NoSuchExecution,
    OwnedByHarbor,
    QueueUnavailable,
)
from harbor_refresh.executions.lifecycle.deletion import delete_many_ended
from harbor_refresh.executions.lifecycle.quarantines import release
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.executions.status import is_final
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.queries import executions_with_jobs
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue.connection import absence_remembered
from harbor_refresh.tasks.queue.members import member

#: The most executions that one request acts on, and the most ids that a message lists.
MAX_CHOSEN, MAX_LISTED = 100, 5
#: The actions that Harbor does while this service is attached to it.
OF_HARBOR = ("stop", "retry", "resume", "remove")


def may_act(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.change_execution")


def may_delete(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.delete_execution")


def harbors() -> set[str]:
    """The actions that the pages leave out, because Harbor does them."""
    return set(OF_HARBOR) if is_attached() else set()


@dataclass(frozen=True)
class Again:
    """A verb that runs jobs once more: its use case, and what the message says of no job (`nothing`) or of
    some."""

    word: Word
    use_case: Callable[[int], int]
    nothing: str
    done: str


def refresh_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Refresh these executions in this request. If the database goes away, mark those that are left."""
    left: dict[int, str] = {}
    outcome, held = Refreshed(), []
    try:
        with absence_translated():
            rows = _rows(request, ids)
            left = {one.pk: one.vendor_type for one in rows}
            held = list(Quarantine.objects.filter(pk__in=left).order_by("pk").values_list("pk", flat=True))
            for execution in rows:
                if execution.pk not in held:
                    outcome += _refresh(request, execution)
                del left[execution.pk]
    except DatabaseAway as exc:
        _mark_instead(request, left, exc)
    if outcome.succeeded:
        refreshed = plural(outcome.succeeded, "execution")
        messages.success(request, f"{refreshed} refreshed, {outcome.changed:,} changed.")
    if held:
        listed = id_list(held, at_most=MAX_LISTED)
        release_them = "Release them from quarantine to try them again."
        messages.warning(request, f"In quarantine, so left alone: {listed}. {release_them}")
    for pk, reason in list(outcome.failed.items())[:MAX_LISTED]:
        messages.error(request, f"Execution {pk} could not be refreshed: {reason}")
    if len(outcome.failed) > MAX_LISTED:
        messages.error(request, f"{len(outcome.failed) - MAX_LISTED:,} more could not be refreshed.")


def _refresh(request: HttpRequest, execution: Execution) -> Refreshed:
    with noted(request, Word.REFRESH, Kind.EXECUTION, execution) as entry:
        outcome = refresh([execution.pk])
        entry.skip = not (outcome.succeeded or outcome.failed)  # deleted or quarantined since it was chosen
        entry.detail = outcome.failed.get(execution.pk, "")
        entry.outcome = Outcome.FAILED if entry.detail else Outcome.DONE if outcome.changed else Outcome.UNCHANGED
    return outcome


def _mark_instead(request: HttpRequest, left: Mapping[int, str], reason: DatabaseAway) -> None:
    if mark(member(pk, vendor) for pk, vendor in sorted(left.items())):
        marked = plural(len(left), "execution")
        messages.warning(request, f"{reason}. {marked} marked instead: the workers refresh them when it is back.")
    else:
        messages.error(request, f"{reason}, and Redis is away too. Reconcile will find these executions.")


def stop_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Stop these executions in this request, one after another."""
    stopped, asked, ended = 0, 0, []
    with errors_shown(request):
        for execution in _rows(request, ids):
            if is_final(execution.status):
                ended.append(execution.pk)
                continue
            with _left_out_if_gone():
                asked += stop_jobs(execution.pk, partial(note_row, request, Word.STOP, Kind.EXECUTION, execution))
                stopped += 1
    if ended:
        messages.warning(request, f"Already ended, so left alone: {id_list(ended, at_most=MAX_LISTED)}.")
    if stopped:
        running = plural(asked, "job runs and was", "jobs run and were")
        messages.success(request, f"{plural(stopped, 'execution')} stopped; {running} asked to stop.")


def retry_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Retry the failed jobs of these executions, one execution after another."""
    verb = Again(Word.RETRY, retry_failed, "has failed", "will be tried again")
    _run_again(request, ids, verb)


def resume_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Run the stopped jobs of these executions once more, one execution after another."""
    verb = Again(Word.RESUME, resume_stopped, "was stopped", "will run again")
    _run_again(request, ids, verb)


def delete_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Delete those of these executions that have ended, one after another."""
    deleted, left = 0, []
    with errors_shown(request):
        for execution in _rows(request, ids):
            with noted(request, Word.DELETE, Kind.EXECUTION, execution) as entry:
                entry.skip = not delete_many_ended([execution.pk])
            if entry.skip:
                left.append(execution.pk)
            else:
                deleted += 1
    if left:
        messages.warning(request, f"Not deleted, stop them first: {id_list(left, at_most=MAX_LISTED)}.")
    if deleted:
        messages.success(request, f"{plural(deleted, 'execution')} deleted.")


def release_now(request: HttpRequest, executions: Iterable[Execution]) -> None:
    """Release these executions from quarantine."""
    released = 0
    with errors_shown(request):
        for execution in executions:
            with noted(request, Word.RELEASE, Kind.QUARANTINE, execution) as entry:
                entry.skip = not release([execution.pk])
            released += not entry.skip
    free = plural(released, "execution is", "executions are")
    messages.success(request, f"{free} free again and will be refreshed soon.")


def _run_again(request: HttpRequest, ids: Sequence[int], verb: Again) -> None:
    again: list[int] = []
    with errors_shown(request):
        rows = _rows(request, ids)
        with_jobs = set(executions_with_jobs([one.pk for one in rows]))
        if without := [one.pk for one in rows if one.pk not in with_jobs]:
            left = id_list(without, at_most=MAX_LISTED)
            messages.warning(request, f"Without jobs, so left alone: {left}.")
        for execution in rows:
            if execution.pk not in with_jobs:
                continue
            with _left_out_if_gone(), noted(request, verb.word, Kind.EXECUTION, execution) as entry:
                entry.count = verb.use_case(execution.pk)
                entry.skip = not entry.count
                again += [entry.count] if entry.count else []
        if with_jobs and not again:
            messages.warning(request, f"No job of these executions {verb.nothing}.")
    if again:
        messages.success(request, f"{plural(sum(again), 'job')} of {plural(len(again), 'execution')} {verb.done}.")


def _rows(request: HttpRequest, ids: Sequence[int]) -> list[Execution]:
    """Return the executions that there are, in the order of their ids. If there are too many, return none."""
    if len(ids) > MAX_CHOSEN:
        most = f"{MAX_CHOSEN:,} at once is the most"
        messages.error(request, f"Nothing was done: {most}. Choose all that match, and workers do it.")
        return []
    return list(Execution.objects.filter(pk__in=ids).order_by("pk"))


@contextmanager
def _left_out_if_gone() -> Iterator[None]:
    """An execution that was deleted since it was chosen is left out."""
    with suppress(NoSuchExecution):
        yield


@contextmanager
def errors_shown(request: HttpRequest) -> Iterator[None]:
    """Show a message if a server is away. Work done before stays done, and its message is shown too.

    Redis is waited for only once, however many executions are chosen.
    """
    try:
        with absence_translated(), absence_remembered():
            yield
    except (QueueUnavailable, DatabaseAway) as exc:
        messages.error(request, f"{exc}. The rest was left as it is: try again when it is back.")
    except OwnedByHarbor as exc:
        messages.error(request, f"{exc}.")
    except Contended as exc:
        messages.error(request, f"{exc} The rest was left as it is: try again.")
