"""The jobs of the pictures and of the recording (test_pictures.py)."""

import time
from typing import Any

from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import Handle, TrackedJob


@app.task(base=TrackedJob, name="mirror.copy")
def copy(job: Handle, artifact: str) -> None:
    time.sleep(0.005)  # the work


@app.task(base=TrackedJob, name="shop.fetch")
def fetch(job: Handle) -> str:
    return "library/alpine"


@app.task(base=TrackedJob, name="shop.build")
def build(job: Handle, source: str, platform: str) -> str:
    time.sleep(1 if platform == "amd64" else 600)  # the work
    return platform


@app.task(base=TrackedJob, name="shop.scan")
def scan(job: Handle, image: str) -> str:
    return image


@app.task(base=TrackedJob, name="shop.publish")
def publish(job: Handle, *images: Any) -> None:
    pass
