"""Which jobs may wait for the reaper: those whose message was lost with a worker.

Redis writes a message to the socket of a worker, and kombu records it a moment later. If the worker is killed in
between, or its connection is cut, the message is gone (docs/jobs.md). So a job may be late if it has such a moment
for itself, which comes

1. after its message was sent,
2. and before another job begins whose message was sent later, because a queue hands its messages out in order.

A job behind a late one in its chain has no message, and is late with it.
"""

import math
from collections.abc import Iterable

from harbor_refresh.executions.status import is_final
from tests.soak.evidence import Evidence, JobRow

#: A message is sent so many seconds before or after its row says it, because recovery sends it in its next pass.
SLACK = 2.0
#: So long may a worker have read from its socket and not recorded what it read: the machine is busy.
GRACE = 5.0


def lost_with_workers(evidence: Evidence, moments: Iterable[float]) -> int | None:
    """Return how many messages were lost at these moments, of which each takes one at most. None if a job is late
    for another reason."""
    waiting = {row.task: row for row in evidence.jobs if not is_final(row.status)}
    if not all(row.published or row.before in waiting for row in waiting.values()):
        return None
    sent = {row.job: _sent(evidence, row) for row in waiting.values() if row.published}
    left = {job: (at - SLACK, _left_the_queue(evidence, at) + GRACE) for job, at in sent.items()}
    for moment in sorted(moments):
        possible = [(until, job) for job, (since, until) in left.items() if since <= moment <= until]
        if possible:
            del left[min(possible)[1]]
    return None if left else len(sent)


def _sent(evidence: Evidence, row: JobRow) -> float:
    """Return when its last message was sent: when it was published, after its run wanted another try, or after it
    was taken from a dead process."""
    began = [run.began for run in evidence.runs if run.job == row.job]
    changed = [change.at for change in evidence.changes if change.task == row.task]
    return max([row.published or 0.0, *began, *changed])


def _left_the_queue(evidence: Evidence, sent: float) -> float:
    """Return when the first job began whose message was sent later."""
    later = {row.job: row.published for row in evidence.jobs if row.published and row.published > sent + SLACK}
    return min((run.began for run in evidence.runs if run.began > later.get(run.job, math.inf)), default=math.inf)
