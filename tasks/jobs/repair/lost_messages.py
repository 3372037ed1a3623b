"""Messages that were lost with a worker: their jobs get another one as soon as their queue is empty.

Redis takes a message out of its list before kombu can note who has it. If the worker is killed in between, the
message is gone, and nothing in the broker tells that. So after a death the reaper does one more pass, in which it
is not patient with jobs whose message was sent before that: if such a job waits, and its queue is empty, its
message is lost, or a live worker holds it. Then another message is harmless, because a job begins once
(lifecycle/admission.py).

While messages wait in a queue, its jobs may wait for those. Then there is another pass later, each time after
twice as long, because a pass reads all unfinished jobs. After a pass that found an answer for each job there is
none until another process dies. RabbitMQ loses no message with a worker, so there a pass is not needed, and
harmless.

What if the process dies on any line, or a server is away: the next recovery, in this process or another, does the
pass. What if Redis forgets the deaths: the reaper sends the message again, in its own time.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tasks.conf import refresh_settings
from tasks.jobs.repair.reaper import MayWait, reap
from tasks.models.job import Job
from tasks.queue import execution_queue

FIRST_PAUSE = 5.0  # seconds
LONGEST_PAUSE = 320.0


@dataclass
class Search:
    """The search after the last death, in this process."""

    death: int | None = None
    pause: float = 0.0
    begins_at: float = 0.0
    is_over: bool = True


_search = Search()


def search_lost_messages(may_wait: MayWait) -> None:
    """Do a pass of the reaper that is due after a death."""
    global _search  # noqa: PLW0603
    died = execution_queue().last_death(before=round(time.time() * 1_000_000))
    if died is not None and died != _search.death:
        _search = Search(died, FIRST_PAUSE, is_over=False)
    if _search.is_over or _search.death is None or time.monotonic() < _search.begins_at:
        return
    still_there: list[int] = []

    def asked(jobs: Sequence[Job]) -> Collection[int]:
        found = may_wait(jobs)
        still_there.extend(found)
        return found

    counted_as_dead = _search.death + round(refresh_settings().node_ttl * 1_000_000)
    total = reap(asked, sent_before=counted_as_dead)
    _search.is_over = not still_there and not total.troubled
    _search.begins_at = time.monotonic() + _search.pause
    _search.pause = min(2 * _search.pause, LONGEST_PAUSE)
