"""The jobs of the soak. Each run writes a line when it begins and a line when it ends.

`celery -A harbor_refresh worker --include tests.soak.jobs` loads them. A line is JSON. One write appends it to the
file that SOAK_RUNS names, so lines of several processes never mix. A run whose process is killed has no second
line.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harbor_refresh.celery import app
from harbor_refresh.tasks.jobs import Handle, TrackedJob


def write(line: dict[str, Any]) -> None:
    file = os.open(Path(os.environ["SOAK_RUNS"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


@contextmanager
def written_down(job: Handle, kind: str, **said: Any) -> Iterator[Callable[..., None]]:
    """Write the lines of a run. `at` is the time of day, comparable with the database's; `clock` is monotonic.

    Yields a function that writes a line. A run that asks for another try writes its end before it asks, because
    the other try may begin at once.
    """
    run = job.run
    line = {
        "job": run.job,
        "task": run.task_id,
        "revision": run.revision,
        "kind": kind,
        "pid": os.getpid(),
        "worker": os.getppid(),
    }

    def note(what: str, **more: Any) -> None:
        write({"what": what, **line, "at": time.time(), "clock": time.monotonic(), **more})

    note("begin", **said)
    try:
        yield note
    except BaseException as exc:
        note("end", outcome=type(exc).__name__)
        raise
    note("end", outcome="returned")


@app.task(base=TrackedJob, name="soak.plain")
def plain(job: Handle, seconds: float = 0.0) -> None:
    with written_down(job, "plain"):
        time.sleep(seconds)  # the work of the job


@app.task(base=TrackedJob, name="soak.pages", max_attempts=12)
def pages(job: Handle, page: int, last: int, countdown: float) -> None:
    """Ask for another try with the next page until the last page is reached."""
    with written_down(job, "pages", page=page) as note:
        if page < last:
            note("end", outcome="asks for another try")
            job.retry(args=(page + 1, last, countdown), countdown=countdown)


@app.task(bind=True, base=TrackedJob, name="soak.flaky", autoretry_for=(OSError,), default_retry_delay=1)
def flaky(self: Any, job: Handle, failures: int) -> None:
    with written_down(job, "flaky"):
        if self.request.retries < failures:
            raise OSError("not there yet")


@app.task(base=TrackedJob, name="soak.fails")
def fails(job: Handle) -> None:
    with written_down(job, "fails"):
        raise ValueError("it is broken")


@app.task(base=TrackedJob, name="soak.gives")
def gives(job: Handle, value: str) -> dict[str, str]:
    with written_down(job, "gives"):
        return {"value": value}


@app.task(base=TrackedJob, name="soak.hands_on")
def hands_on(job: Handle, got: Any, wanted: str, value: str) -> dict[str, str]:
    with written_down(job, "hands_on", got=got, wanted={"value": wanted}):
        return {"value": value}


@app.task(base=TrackedJob, name="soak.takes")
def takes(job: Handle, got: Any, wanted: str) -> None:
    with written_down(job, "takes", got=got, wanted={"value": wanted}):
        pass


@app.task(base=TrackedJob, name="soak.only_one", unique=True)
def only_one(job: Handle, key: str, seconds: float) -> None:
    with written_down(job, "only_one", key=key):
        time.sleep(seconds)  # the work of the job


@app.task(base=TrackedJob, name="soak.gathers")
def gathers(job: Handle, got: Any, *wanted: str) -> None:
    with written_down(job, "gathers", got=got, wanted=[{"value": one} for one in wanted]):
        pass


#: At most so many runs of a key at once. `--limit` sets it, and then most of the jobs have it.
LIMIT = int(os.environ.get("SOAK_LIMIT", "2"))
IS_ABOUT_LIMITS = "SOAK_LIMIT" in os.environ


@app.task(base=TrackedJob, name="soak.limited", concurrency=LIMIT, key=lambda job: job.args[0])
def limited(job: Handle, key: str, seconds: float) -> None:
    with written_down(job, "limited", key=key):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not job.should_stop():
            time.sleep(0.1)  # the work between two questions


@app.task(base=TrackedJob, name="soak.steady")
def steady(job: Handle, seconds: float) -> None:
    with written_down(job, "steady"):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not job.should_stop():
            job.check_in(f"{until - time.monotonic():.1f} s to go")
            time.sleep(0.2)  # the work between two check-ins


@app.task(base=TrackedJob, name="soak.deadly", max_attempts=3)
def deadly(job: Handle, kills: int) -> None:
    """Kill its process in each run whose revision is below `kills`."""
    with written_down(job, "deadly"):
        if job.run.revision < kills:
            os.kill(os.getpid(), signal.SIGKILL)


@app.task(base=TrackedJob, name="soak.too_long", time_limit=2)
def too_long(job: Handle) -> None:
    with written_down(job, "too_long"):
        time.sleep(30)  # longer than the time limit, which must end it


@app.task(base=TrackedJob, name="soak.soft", soft_time_limit=1)
def soft(job: Handle) -> None:
    with written_down(job, "soft"):
        time.sleep(30)  # longer than the soft limit, which must end it


ALL = (
    *(plain, pages, flaky, fails, gives, hands_on, takes, gathers),
    *(only_one, limited, steady, deadly, too_long, soft),
)
#: The errors with which a job of a kind may end without any fault.
ERRORS = {
    "fails": ("ValueError",),
    "flaky": ("OSError",),
    "too_long": ("TimeLimitExceeded",),
    "soft": ("SoftTimeLimitExceeded",),
}
MAX_ATTEMPTS = {one.name.removeprefix("soak."): one.max_attempts for one in ALL}
