"""Mirrors for `make up` to show: four repositories a minute, without an end. The example to copy is `mirror`.

celery -A harbor_refresh worker -c 2 -Q examples --include examples.mirror
python -m examples.traffic

It stops some executions and retries the failed jobs of others. It keeps the last hundred executions, and starts
none while three are unfinished. The workers finish what is unfinished when this program ends.
"""

import random
import signal
from threading import Event, Thread
from typing import Any

from django.db import close_old_connections

from examples.mirror import replicate
from harbor_refresh.tasks.jobs import TrackedExecution, start

#: A queue of its own with a worker of its own, so that refreshes do not wait behind slow jobs.
QUEUE = "examples"
VENDOR = "REPLICATION"
LABEL = {"example": "mirror"}
REPOSITORIES = ("alpine", "busybox", "debian", "nginx", "python", "valkey")
SIZES = (5, 10, 20, 40)
KEEP = 100
UNFINISHED = 3
EVERY_SECONDS, RETRY_SECONDS, STOP_SECONDS = 15.0, 2.0, 4.0

ended = Event()


def mirrors(**which: Any) -> Any:
    """The executions of this program, the oldest first."""
    return TrackedExecution.objects.filter(vendor_type=VENDOR, extra_attrs=LABEL, **which).order_by("pk")


def start_mirror() -> TrackedExecution:
    number, release = random.randrange(len(REPOSITORIES)), random.randint(1, 99)
    tags = [f"{release}.{minor}" for minor in range(random.choice(SIZES))]
    jobs = [replicate.s(f"library/{REPOSITORIES[number]}", tag).set(queue=QUEUE) for tag in tags]
    return start(VENDOR, vendor_id=number + 1, jobs=jobs, trigger="SCHEDULE", extra_attrs=LABEL)


def make_traffic() -> None:
    """Start a mirror; sometimes stop it, or retry the failed jobs of the last mirror that failed."""
    if mirrors(end_time=None).count() < UNFINISHED:
        execution, chance = start_mirror(), random.random()
        if chance < 0.1:
            ended.wait(STOP_SECONDS)
            execution.stop()
        elif chance < 0.3 and (failed := mirrors(status="Error").last()):
            failed.retry_failed()


def delete_the_oldest() -> None:
    surplus = max(0, mirrors().count() - KEEP)
    oldest = mirrors(end_time__isnull=False).values_list("pk", flat=True)[:surplus]
    TrackedExecution.objects.filter(pk__in=list(oldest)).delete()


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        # in another thread, because this one may be inside ended.wait, and would wait for itself
        signal.signal(number, lambda *_: Thread(target=ended.set).start())
    print("Mirrors begin", flush=True)
    trouble = False
    while not ended.is_set():
        close_old_connections()
        try:
            make_traffic()
            delete_the_oldest()
        except Exception as exc:  # a server is down: print it once, and try again
            if not trouble:
                print(f"{type(exc).__name__}: {exc}".strip(), "Trying again.", flush=True)
            trouble = True
            ended.wait(RETRY_SECONDS)
        else:
            if trouble:
                print("It works again", flush=True)
            trouble = False
            ended.wait(EVERY_SECONDS)
    print("No more mirrors")


if __name__ == "__main__":
    main()
