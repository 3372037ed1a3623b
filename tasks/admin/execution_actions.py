"""The actions on executions that were chosen in the list or on a page, and the messages that they show.

Each execution has a transaction of its own, with its entries in the logs. Work done before an error stays done.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Outcome, Word
from harbor_refresh.executions.admin.audit import noted
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
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.executions.status import is_final
from harbor_refresh.executions.text import id_list, plural
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.queue.connection import absence_remembered

#: The most executions that one request acts on, and the most ids that a message lists.
MAX_CHOSEN, MAX_LISTED = 100, 5
#: The actions that Harbor does while this service is attached to it.
OF_HARBOR = ("stop", "retry", "resume", "remove")


def may_act(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.change_execution")


def may_delete(request: HttpRequest) -> bool:
    return request.user.has_perm("harbor_executions.delete_execution")


def may_run_again(request: HttpRequest, execution: Execution) -> bool:
    """A person who may not delete executions may not go on with a deletion of many."""
    is_deletion = execution.vendor_type == BULK and execution.extra_attrs.get("verb") == Verb.DELETE
    return not is_deletion or may_delete(request)


def harbors() -> set[str]:
    """The actions that the pages leave out, because Harbor does them."""
    return set(OF_HARBOR) if is_attached() else set()


def refresh_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Refresh these executions in this request."""
    outcome, held = Refreshed(), []
    with errors_shown(request):
        for execution in _rows(request, ids):
            with noted(request, Word.REFRESH, Kind.EXECUTION, execution) as entry:
                one = refresh([execution.pk])
                entry.skip = not (one.succeeded or one.failed)
                entry.detail = one.failed.get(execution.pk, "")
                entry.outcome = (
                    Outcome.FAILED if one.failed else Outcome.DONE if one.changed else Outcome.UNCHANGED
                )
            outcome += one
            held += [execution.pk] if entry.skip else []
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


@dataclass(frozen=True)
class Act:
    """What an action does to one execution. `do` returns how many jobs it concerns; None: it changed nothing.
    `done` says what was done to so many executions with so many jobs, `left` why others were left alone."""

    word: Word
    do: Callable[[Execution], int | None]
    done: Callable[[int, int], str]
    left: str
    kind: Kind = Kind.EXECUTION

    @property
    def runs_again(self) -> bool:
        return self.word in (Word.RETRY, Word.RESUME)

    def now(self, request: HttpRequest, ids: Sequence[int]) -> None:
        """Act on these executions in this request, one after another."""
        done: list[int] = []
        left: list[int] = []
        with errors_shown(request):
            for execution in _rows(request, ids):
                if self.runs_again and not may_run_again(request, execution):
                    left.append(execution.pk)
                    continue
                with suppress(NoSuchExecution):  # it was deleted since it was chosen
                    with noted(request, self.word, self.kind, execution) as entry:
                        jobs = self.do(execution)
                        entry.skip = jobs is None
                        entry.count = jobs if self.runs_again else None
                    if jobs is None:
                        left.append(execution.pk)
                    else:
                        done.append(jobs)
        if left:
            messages.warning(request, f"{self.left}: {id_list(left, at_most=MAX_LISTED)}.")
        if done:
            messages.success(request, f"{self.done(len(done), sum(done))}.")


def _stop(execution: Execution) -> int | None:
    return None if is_final(execution.status) else stop_jobs(execution.pk)


def _retry(execution: Execution) -> int | None:
    return retry_failed(execution.pk) or None


def _resume(execution: Execution) -> int | None:
    return resume_stopped(execution.pk) or None


def _remove(execution: Execution) -> int | None:
    return 0 if delete_many_ended([execution.pk]) else None


def _release(execution: Execution) -> int | None:
    return 0 if release([execution.pk]) else None


def _stopped(executions: int, jobs: int) -> str:
    asked = plural(jobs, "job runs and was", "jobs run and were")
    return f"{plural(executions, 'execution')} stopped; {asked} asked to stop"


def _of_executions(done: str) -> Callable[[int, int], str]:
    return lambda executions, jobs: f"{plural(jobs, 'job')} of {plural(executions, 'execution')} {done}"


def _free(executions: int, _: int) -> str:
    return f"{plural(executions, 'execution is', 'executions are')} free again and will be refreshed soon"


STOP = Act(Word.STOP, _stop, _stopped, "Already ended, so left alone")
RETRY = Act(Word.RETRY, _retry, _of_executions("will be tried again"), "No job of them has failed, so left alone")
RESUME = Act(Word.RESUME, _resume, _of_executions("will run again"), "No job of them was stopped, so left alone")
REMOVE = Act(
    Word.DELETE, _remove, lambda count, _: f"{plural(count, 'execution')} deleted", "Not deleted, stop them first"
)
RELEASE = Act(Word.RELEASE, _release, _free, "Not in quarantine", Kind.QUARANTINE)


def _rows(request: HttpRequest, ids: Sequence[int]) -> list[Execution]:
    """Return the executions that there are, in the order of their ids. If there are too many, return none."""
    if len(ids) > MAX_CHOSEN:
        most = f"{MAX_CHOSEN:,} at once is the most"
        messages.error(request, f"Nothing was done: {most}. Choose all that match, and workers do it.")
        return []
    return list(Execution.objects.filter(pk__in=ids).order_by("pk"))


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
