"""`tasks.sample`: write down the state of the service, for the charts, and the nodes that died.

Beat sends it every REFRESH_SAMPLE_INTERVAL_SECONDS. It is not sent while another tick waits, so it never takes the
place of one that works.
"""

from celery import shared_task

from harbor_refresh.tasks.overview import events, samples
from harbor_refresh.tasks.overview.state import look
from harbor_refresh.tasks.tick import Tick


@shared_task(name="tasks.sample", base=Tick, most_waiting=1)
def sample() -> int:
    state = look()
    if "database" in state.absent:
        return 0
    samples.record(state)
    events.note_deaths(state.dead or ())
    return 1
