"""Mirrors to look at: four repositories a minute, without an end. Run by `make up`; what to copy is `mirror`.

celery -A harbor_refresh worker -c 2 -Q examples --include examples.mirror
python -m examples.traffic

It stops some on the way, and tries again what failed of some. It keeps the last hundred, and starts none while
three are unfinished. What is under way when it ends comes to its end without it.
"""

import random
import signal
from threading import Event
from typing import Any

from django.db import close_old_connections

from examples.mirror import replicate
from tasks.jobs import TrackedExecution, start

#: A queue of their own, with a worker of its own: so the refresh never waits behind jobs that take their time.
QUEUE = "examples"
VENDOR = "REPLICATION"
MARK = {"example": "mirror"}
REPOSITORIES = ("alpine", "busybox", "debian", "nginx", "python", "valkey")
SIZES = (5, 10, 20, 40)
KEEP = 100
UNFINISHED = 3
EVERY_SECONDS, AGAIN_SECONDS, STOP_SECONDS = 15.0, 2.0, 4.0

ended = Event()


def ours(**which: Any) -> Any:
    """Executions of ours, the oldest first."""
    return TrackedExecution.objects.filter(vendor_type=VENDOR, extra_attrs=MARK, **which).order_by("pk")


def mirror() -> TrackedExecution:
    number, release = random.randrange(len(REPOSITORIES)), random.randint(1, 99)
    tags = [f"{release}.{minor}" for minor in range(random.choice(SIZES))]
    jobs = [replicate.s(f"library/{REPOSITORIES[number]}", tag).set(queue=QUEUE) for tag in tags]
    return start(VENDOR, vendor_id=number + 1, jobs=jobs, trigger="SCHEDULE", extra_attrs=MARK)


def go_on() -> None:
    """Start one; now and then think better of it, or of the last that failed."""
    if ours(end_time=None).count() < UNFINISHED:
        execution, luck = mirror(), random.random()
        if luck < 0.1:
            ended.wait(STOP_SECONDS)
            execution.stop()
        elif luck < 0.3 and (failed := ours(status="Error").last()):
            failed.retry_failed()


def forget_the_oldest() -> None:
    surplus = max(0, ours().count() - KEEP)
    oldest = ours(end_time__isnull=False).values_list("pk", flat=True)[:surplus]
    TrackedExecution.objects.filter(pk__in=list(oldest)).delete()


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    print("Mirrors begin", flush=True)
    trouble = False
    while not ended.is_set():
        close_old_connections()
        try:
            go_on()
            forget_the_oldest()
        except Exception as exc:  # whatever is away: said once, and tried again
            if not trouble:
                print(f"{type(exc).__name__}: {exc}".strip(), "Trying again.", flush=True)
            trouble = True
            ended.wait(AGAIN_SECONDS)
        else:
            if trouble:
                print("It works again", flush=True)
            trouble = False
            ended.wait(EVERY_SECONDS)
    print("No more mirrors")


if __name__ == "__main__":
    main()
