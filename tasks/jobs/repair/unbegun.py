"""Jobs that a dead worker had fetched and not begun: their messages go back into their queues.

A message does not say which worker holds it. So if a process has died, every message of a job goes back that was
fetched before the process counted as dead, and whose job does not run. One of them may be with a live worker that
works on a long job. Then two workers have it, and the second one finds that it runs or has ended
(lifecycle/admission.py).

A message for later (`eta`) stays, because the worker that fetched it has to wait for its time. A message that goes
back is fetched again later than that death, so it goes back once for each death. Each process looks once after a
death, because a worker may hold many messages for later, and to read them all takes long.

What if the process dies on any line, or a server is away: the next pass, in this process or another, looks again.
What if Redis forgets the deaths, or a clock is ahead: the message comes back with the visibility timeout of the
broker, as every other message of a dead worker does.
"""

import logging
import time
from collections.abc import Sequence

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker.unacknowledged import Fetched, fetched_before, put_back
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.queue import execution_queue

log = logging.getLogger("harbor_refresh")

_looked_after: int | None = None  # the death after which this process has looked


def put_unbegun_back() -> int:
    """Return how many messages went back."""
    global _looked_after  # noqa: PLW0603
    died = execution_queue().last_death(before=round(time.time() * 1_000_000))
    if died is None or died == _looked_after:
        return 0
    count = sum(map(_put_back, fetched_before(died / 1_000_000 + pacing.NODE_TTL_SECONDS)))
    _looked_after = died
    if count:
        log.warning("Put %d jobs back that dead workers had fetched and not begun", count)
    return count


def _put_back(fetched: Sequence[Fetched]) -> int:
    found = {one.headers["id"]: one for one in fetched if _is_of_a_job(one)}
    records = job_records().of(list(found))
    unbegun = [one for job, one in found.items() if job not in records or not records[job].is_running]
    put_back(one.tag for one in unbegun)
    return len(unbegun)


def _is_of_a_job(fetched: Fetched) -> bool:
    headers = fetched.headers
    is_named = isinstance(headers.get("id"), str) and message_header.task_of(headers.get(message_header.NAME))
    return bool(is_named) and headers.get("eta") is None
