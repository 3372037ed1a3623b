"""Two tasks that do nothing, in one app with the same settings: a tracked job and a plain Celery task. Both are
acknowledged late, use JSON and keep no result.

The workers of `bench jobs` include this module. The messages wait in QUEUE until a worker is told to consume it.
"""

from collections.abc import Callable
from uuid import uuid4

from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start

QUEUE = "bench.jobs"
#: A queue without a consumer. A worker that was told to stop consuming QUEUE may still take one message of it.
UNCONSUMED = "bench.unconsumed"
Publish = Callable[[int], TrackedExecution | None]


@app.task(base=TrackedJob, name="bench.tracked")
def tracked(job: Handle) -> None:
    return None


@app.task(name="bench.plain")
def plain() -> None:
    return None


def start_tracked(jobs: int, queue: str = QUEUE) -> TrackedExecution:
    return start("REPLICATION", jobs=[tracked.s().set(queue=queue) for _ in range(jobs)])


def publish_plain(jobs: int, queue: str = QUEUE) -> None:
    """Publish over one connection in one batch, as tracked jobs are published."""
    with app.producer_or_acquire() as producer, producer.batch():
        for _ in range(jobs):
            app.send_task(plain.name, task_id=str(uuid4()), queue=queue, producer=producer, retry=False)
