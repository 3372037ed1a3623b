"""`tasks.recover_stale`: release the claims and jobs of dead nodes, a few seconds after their last heartbeat, and
wake the work on actions.

Beat sends it every REFRESH_RECOVER_INTERVAL_SECONDS. A worker that starts, or that notices a silent node, sends
it too.
"""

from contextlib import suppress
from functools import partial

from celery import shared_task

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.tasks.actions import bulk
from harbor_refresh.tasks.broker.lengths import waiting
from harbor_refresh.tasks.broker.mark import lost_before
from harbor_refresh.tasks.broker.unacknowledged import note_again
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.repair.job_recovery import recover_jobs
from harbor_refresh.tasks.jobs.repair.lost_messages import search_lost_messages
from harbor_refresh.tasks.jobs.repair.unbegun import put_unbegun_back
from harbor_refresh.tasks.jobs.runtime.broker import may_wait, publish
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.recover_stale", base=Tick)
def recover_stale() -> int:
    count = recover(idle=not waiting(WORK), lost_before=partial(lost_before, job_records().begin_epoch))
    count += recover_jobs(publish, may_wait).given_back
    bulk.wake()
    put_unbegun_back()
    note_again()
    with suppress(DatabaseAway):  # `recover_jobs` has told it
        search_lost_messages(may_wait)
    return count
