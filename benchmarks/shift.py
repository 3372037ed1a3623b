"""A crew at work: its workers are there, and it is asked now and then whether they still are."""

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.crew import Crew
from benchmarks.errors import BenchError
from benchmarks.ground import Ground
from benchmarks.schedule import running_schedule
from executions.queue import execution_queue

READY_SECONDS = 60
DEFAULT_INTERVAL = 30.0


class SleepingCrew(Crew):
    """Its workers wake nobody."""

    app = "benchmarks.asleep"


@dataclass(frozen=True)
class Shift:
    crew: Crew
    wake_up: bool
    interval: float

    def look(self) -> None:
        if fallen := self.crew.fallen():
            raise BenchError(fallen)


@contextmanager
def shift(
    ground: Ground,
    options: Namespace,
    *,
    wake_up: bool = True,
    interval: float = DEFAULT_INTERVAL,
    include: Sequence[str] = (),
) -> Iterator[Shift]:
    """Workers and a beat that are ready. `interval` counts only without the wake-up."""
    kind = Crew if wake_up else SleepingCrew
    every = DEFAULT_INTERVAL if wake_up else interval
    environ = {"EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": f"{every:g}"}
    before = set(execution_queue().stats().nodes)  # of an earlier crew, not yet taken for dead
    everyone = kind(ground, options.workers, options.concurrency, include=include, **environ)
    with running_schedule(), everyone as crew:
        at_work = Shift(crew, wake_up, every)
        deadline = time.monotonic() + READY_SECONDS
        while len(set(execution_queue().stats().nodes) - before) < options.workers * options.concurrency:
            at_work.look()
            if time.monotonic() > deadline:
                raise BenchError(f"The workers were not ready after {READY_SECONDS} s.")
            time.sleep(0.1)
        yield at_work
