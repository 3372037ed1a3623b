"""Two tasks that do nothing, in one app, with one set of settings: one that an execution follows, and one as
Celery has it. Both are acknowledged late, are JSON, and keep no result.

Included by the workers of `bench jobs`. Their messages wait in a queue of their own until a worker is told of it.
"""

from collections.abc import Callable
from uuid import uuid4

from harbor_refresh.celery import app
from tasks.jobs import Handle, TrackedExecution, TrackedJob, start

QUEUE = "bench.jobs"
#: A worker that was told to leave QUEUE may still take one message of it; of this one, none.
NOBODYS = "bench.nobodys"
Publish = Callable[[int], TrackedExecution | None]


@app.task(base=TrackedJob, name="bench.tracked")
def tracked(job: Handle) -> None:
    return None


@app.task(name="bench.plain")
def plain() -> None:
    return None


def start_tracked(jobs: int) -> TrackedExecution:
    return start("REPLICATION", jobs=[tracked.s().set(queue=QUEUE) for _ in range(jobs)])


def publish_plain(jobs: int, queue: str = QUEUE) -> None:
    """As those of tracked jobs are published: over one connection, in one go."""
    with app.producer_or_acquire() as producer, producer.batch():
        for _ in range(jobs):
            app.send_task(plain.name, task_id=str(uuid4()), queue=queue, producer=producer, retry=False)
