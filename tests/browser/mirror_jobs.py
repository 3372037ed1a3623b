"""The job of the recording (test_pictures.py)."""

import time

from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import Handle, TrackedJob


@app.task(base=TrackedJob, name="mirror.copy")
def copy(job: Handle, artifact: str) -> None:
    time.sleep(0.005)
