"""Jobs of a team, as a user of the product would write them.

`celery -A harbor_refresh worker --include tests.faults.jobs` loads them. Each run of a job writes a line to the
file that JOBS_LOG names. This is its side effect, which tests count.
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import connection

from harbor_refresh.celery import app
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import EndedExecution, Handle, TrackedJob, start


def note(*words: Any) -> None:
    with Path(os.environ["JOBS_LOG"]).open("a") as log:
        log.write(" ".join(map(str, words)) + "\n")


@app.task(base=TrackedJob, name="tests.copy")
def copy(job: Handle, name: str, seconds: float = 0.0) -> str:
    note("copy", name)
    time.sleep(seconds)
    return name


@app.task(base=TrackedJob, name="tests.holds_a_connection")
def holds_a_connection(job: Handle, name: str) -> None:
    job.execution.progress()
    time.sleep(25)


@app.task(base=TrackedJob, name="tests.fail")
def fail(job: Handle, name: str) -> None:
    note("fail", name)
    raise ValueError(f"{name} is broken")


@app.task(name="tests.note_end")
def note_end(ended: EndedExecution, word: str) -> None:
    """A callback: the end that it is told, and the execution as it is at the call."""
    now = ended.execution
    then = (now.status, now.revision) if now else ("deleted", 0)
    note("ended", word, ended.execution_id, ended.status, ended.revision, *then)


@app.task(name="tests.hangs")
def hangs(ended: EndedExecution, how: str) -> None:
    note("ended", how, ended.execution_id, ended.status, ended.revision)
    match how:
        case "sleeps":
            time.sleep(600)
        case "queries":
            connection.cursor().execute("SELECT pg_sleep(600)")
        case "ends":
            os._exit(1)
        case "ignores":
            while True:
                with suppress(Exception):
                    time.sleep(600)


@app.task(base=TrackedJob, name="tests.flaky", max_attempts=3, autoretry_for=(OSError,), default_retry_delay=0)
def flaky(job: Handle, name: str, failures: int) -> None:
    note("flaky", name)
    if Path(os.environ["JOBS_LOG"]).read_text().count(f"flaky {name}\n") <= failures:
        raise OSError(f"{name} is not there yet")


@app.task(base=TrackedJob, name="tests.endless")
def endless(job: Handle, name: str) -> None:
    note("endless", name)
    while not job.should_stop():
        job.check_in("still at it")
        time.sleep(0.05)


@app.task(base=TrackedJob, name="tests.joined")
def joined(job: Handle, before: str, name: str) -> str:
    note("joined", before, name)
    return f"{before}+{name}"


@app.task(base=TrackedJob, name="tests.timed")
def timed(job: Handle, name: str, seconds: float) -> None:
    note("timed", name, time.time())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job.check_in(f"{until - time.monotonic():.1f} s to go")
        time.sleep(0.2)


def effect(name: str, seconds: float) -> None:
    """What a limit counts: an effect that begins and ends."""
    note("begins", name, time.time())
    time.sleep(seconds)
    note("ends", name, time.time())


@app.task(base=TrackedJob, name="tests.limited", concurrency=3)
def limited(job: Handle, name: str, seconds: float = 0.1) -> None:
    effect(name, seconds)


@app.task(base=TrackedJob, name="tests.rated", rate="50/s")
def rated(job: Handle, name: str) -> None:
    effect(name, 0.0)


@app.task(base=TrackedJob, name="tests.slowly_rated", rate="100/m")
def slowly_rated(job: Handle, name: str) -> None:
    effect(name, 0.0)


@app.task(base=TrackedJob, name="tests.build", concurrency=1, key=lambda job: job.args[0], keep_result=True)
def build(job: Handle, *given: Any) -> list[Any]:
    """After the results that it takes come a registry, and a name."""
    *taken, registry, name = given
    effect(f"{registry}/{name}", 0.5)
    if name == "broken":
        raise ValueError
    return [name, *taken]


@app.task(base=TrackedJob, name="tests.grow")
def grow(job: Handle, name: str, levels: int) -> None:
    note("grow", name)
    if levels:
        job.execution.add([grow.s(f"{name}{one}", levels - 1) for one in "ab"], once=name)


@app.task(base=TrackedJob, name="tests.spread")
def spread(job: Handle, name: str, widths: list[int]) -> None:
    """Start as many children as the first width says, each of which does the same with the rest. The last width is
    that of the leaves."""
    note("spread", name)
    width, *below = widths
    for number in range(width):
        child = f"{name}.{number}"
        leaves = [copy.s(f"{child}.{leaf}") for leaf in range(below[0])]
        jobs = leaves if len(below) == 1 else [spread.s(child, below)]
        start("SCAN", jobs=jobs, parent=job.execution, once=child)


def hold(name: str) -> None:
    """Wait until the test opens the gate of this run: the file NAME.NUMBER beside the log, counted from 1."""
    log = Path(os.environ["JOBS_LOG"])
    note("held", name, os.getpid())
    number = sum(line.startswith(f"held {name} ") for line in log.read_text().splitlines())
    while not log.with_name(f"{name}.{number}").exists():
        time.sleep(0.02)


@app.task(base=TrackedJob, name="tests.held")
def held(job: Handle, name: str) -> None:
    hold(name)


@app.task(base=TrackedJob, name="tests.layers")
def layers(job: Handle, name: str, of: int) -> None:
    """Each layer holds on as the job `held` does."""
    for done in range(of):
        job.check_in(f"copying layer {done + 1}", done=done, of=of)
        hold(name)


@app.task(base=TrackedJob, name="tests.kills_its_process", max_attempts=3)
def kills_its_process(job: Handle, name: str) -> None:
    note("kills", name)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(base=TrackedJob, name="tests.deaf")
def deaf(job: Handle, name: str) -> None:
    """It never asks whether it should stop."""
    note("deaf", name, os.getpid())
    while True:
        with suppress(Exception):
            time.sleep(600)


@app.task(base=TrackedJob, name="tests.async_copy", max_attempts=3)
async def async_copy(job: Handle, name: str, seconds: float = 0.0, failures: int = 0) -> str:
    note("async_copy", name, await Execution.objects.acount())
    await asyncio.sleep(seconds)
    if failures:
        job.retry(args=[name, seconds, failures - 1], countdown=0)
    return name


@app.task(base=TrackedJob, name="tests.async_limited", soft_time_limit=1)
async def async_limited(job: Handle, name: str, hears: bool) -> None:
    note("async_limited", name)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            note("limited", name)
            if hears:
                raise


@app.task(base=TrackedJob, name="tests.async_endless")
async def async_endless(job: Handle, name: str) -> None:
    note("async_endless", name)
    while not job.should_stop():
        job.check_in("still at it")
        await asyncio.sleep(0.05)
    note("heard", name)
