"""The actions `Stop` and `Try failed jobs again`, and the messages that they show."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from executions.database import absence_translated
from executions.errors import Contended, DatabaseAway, QueueUnavailable
from tasks.admin.refresh_action import MAX_LISTED, executions
from tasks.id_list import id_list
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.lifecycle.retries import retry_failed
from tasks.jobs.overview.selection import Selection, for_each, select
from tasks.queue.connection import absence_remembered

MAX_CHOSEN = 100


def stop_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Stop these executions in this request, one after another."""
    stopped, asked = 0, 0
    with errors_shown(request):
        chosen = _choose(request, ids)
        if chosen.ended:
            messages.warning(request, f"Had ended before: {id_list(chosen.ended, at_most=MAX_LISTED)}.")
        for _, count in for_each(chosen.going, stop_jobs):
            asked += count
            stopped += 1
    if stopped:
        running = "1 job runs and was" if asked == 1 else f"{asked:,} jobs run and were"
        messages.success(request, f"{executions(stopped)} stopped; {running} asked to stop.")


def retry_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Retry the failed jobs of these executions, one execution after another."""
    retried: list[int] = []
    with errors_shown(request):
        chosen = _choose(request, ids)
        for _, count in for_each((*chosen.going, *chosen.ended), retry_failed):
            if count:
                retried.append(count)
        if (chosen.going or chosen.ended) and not retried:
            messages.warning(request, "No job of these has failed.")
    if retried:
        all_jobs = sum(retried)
        jobs = "1 job" if all_jobs == 1 else f"{all_jobs:,} jobs"
        messages.success(request, f"{jobs} of {executions(len(retried))} will be tried again.")


def _choose(request: HttpRequest, ids: Sequence[int]) -> Selection:
    """Sort the executions by what can be done with them. If there are too many, choose none."""
    if len(ids) > MAX_CHOSEN:
        most = f"{MAX_CHOSEN:,} at once is the most"
        messages.error(request, f"Nothing was done: {most}. `manage.py refresh_jobs` takes any number.")
    chosen = select(ids if len(ids) <= MAX_CHOSEN else ())
    if chosen.without_jobs:
        left = id_list(chosen.without_jobs, at_most=MAX_LISTED)
        messages.warning(request, f"Without jobs, so left alone: {left}.")
    return chosen


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
    except Contended as exc:
        messages.error(request, f"{exc} The rest was left as it is: try again.")
