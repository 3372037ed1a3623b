"""Our job."""

from benchmarks.peers import effects
from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import Handle, TrackedJob


@app.task(base=TrackedJob, name="bench.peers.ours")
def noted(job: Handle, number: int) -> None:
    effects.note(number)
