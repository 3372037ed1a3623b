"""Messages that were lost with a worker: their jobs get another one soon after their queue is empty.

Redis takes a message out of its list before kombu can note who has it. If the worker is killed in between, the
message is gone, and nothing in the broker tells that. So after a death the reaper does one more pass, in which it
is not patient with jobs whose message was sent before that: if such a job waits, and its queue is empty, its
message is lost, or a live worker holds it. Then another message is harmless, because a job begins once
(lifecycle/admission.py).

While messages wait in a queue, its jobs may wait for those. Then there is another pass later, each time after
twice as long, because a pass reads all unfinished jobs. After a pass that found an answer for each job there is
none until another process dies. An hour after the death the passes of the reaper's schedule take over. RabbitMQ
loses no message with a worker, so there a pass is not needed, and harmless.

One process does a pass, whichever recovery comes first when it is due: Redis keeps when that is (begin_search.lua,
which also says what happens if Redis or the process dies).
"""

from collections.abc import Collection, Sequence

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.jobs.repair.reaper import MayWait, reap
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.clock import at

FIRST_PAUSE = 5.0  # seconds
LONGEST_PAUSE = 320.0
#: The reaper's own passes come every hour, and are patient for some minutes alone.
WITHIN = 3600.0


def search_lost_messages(may_wait: MayWait) -> None:
    """Do a pass of the reaper, if one is due after a death. Raises DatabaseAway."""
    death = execution_queue().begin_search(FIRST_PAUSE, LONGEST_PAUSE, WITHIN)
    if not death:
        return
    counted_as_dead = death + round(pacing.NODE_TTL_SECONDS * 1_000_000)
    sent_before = at(counted_as_dead)
    is_unsure = False

    def asked(jobs: Sequence[Job]) -> Collection[int]:
        nonlocal is_unsure
        found = may_wait(jobs)
        is_unsure |= any(job.pk in found and job.published_at and job.published_at < sent_before for job in jobs)
        return found

    with absence_translated():
        total = reap(asked, sent_before=counted_as_dead)
    if not is_unsure and not total.troubled:
        execution_queue().end_search(death)
