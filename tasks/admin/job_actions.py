"""The actions `Stop` and `Try failed jobs again`: what they do, and what they tell the person who asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from executions.database import absence_translated
from executions.errors import Contended, DatabaseAway, QueueUnavailable
from tasks.admin.refresh_action import executions, some
from tasks.jobs.lifecycle.job_stops import stop_jobs
from tasks.jobs.lifecycle.retries import retry_failed
from tasks.jobs.overview.selection import Selection, for_each, select
from tasks.queue.connection import absence_remembered

MOST = 100


def stop_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Stop these within this request, one after the other."""
    stopped, asked = 0, 0
    with absences_told(request):
        these = _meant(request, ids)
        if these.ended:
            messages.warning(request, f"Had ended before: {some(these.ended)}.")
        for _, count in for_each(these.going, stop_jobs):
            asked += count
            stopped += 1
    if stopped:
        running = "1 job runs and was" if asked == 1 else f"{asked:,} jobs run and were"
        messages.success(request, f"{executions(stopped)} stopped; {running} asked to stop.")


def retry_now(request: HttpRequest, ids: Sequence[int]) -> None:
    """Try what failed of these once more, one execution after the other."""
    tried: list[int] = []
    with absences_told(request):
        these = _meant(request, ids)
        for _, count in for_each((*these.going, *these.ended), retry_failed):
            if count:
                tried.append(count)
        if (these.going or these.ended) and not tried:
            messages.warning(request, "No job of these has failed.")
    if tried:
        all_jobs = sum(tried)
        jobs = "1 job" if all_jobs == 1 else f"{all_jobs:,} jobs"
        messages.success(request, f"{jobs} of {executions(len(tried))} will be tried again.")


def _meant(request: HttpRequest, ids: Sequence[int]) -> Selection:
    """What can be done with them; nothing, if they are too many."""
    if len(ids) > MOST:
        messages.error(
            request,
            f"Nothing was done: {MOST:,} at once is the most. `manage.py refresh_jobs` takes any number.",
        )
    these = select(ids if len(ids) <= MOST else ())
    if these.without_jobs:
        messages.warning(request, f"Without jobs, so left alone: {some(these.without_jobs)}.")
    return these


@contextmanager
def absences_told(request: HttpRequest) -> Iterator[None]:
    """A server that is away is told; what had been done by then stands, and is told as well. Redis is waited for
    once, however many executions it is asked about."""
    try:
        with absence_translated(), absence_remembered():
            yield
    except (QueueUnavailable, DatabaseAway) as exc:
        messages.error(request, f"{exc}. The rest was left as it is: try again when it is back.")
    except Contended as exc:
        messages.error(request, f"{exc} The rest was left as it is: try again.")
