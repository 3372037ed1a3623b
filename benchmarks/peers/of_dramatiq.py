"""dramatiq's group, with a callback that runs when all of its messages are processed."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dramatiq import Message, group
from dramatiq.results import ResultMissing

from benchmarks.peers.dramatiq_jobs import broker, ended, noted
from benchmarks.peers.ready import ready
from benchmarks.peers.said import Said
from benchmarks.processes import Processes
from benchmarks.servers import Servers

NAME = "dramatiq's group"
READY = "Worker process is ready for action."


def workers(servers: Servers, workers: int, concurrency: int) -> AbstractContextManager[Processes]:
    dramatiq = [sys.executable, "-m", "dramatiq", "benchmarks.peers.dramatiq_jobs", "--threads=1"]
    commands = {f"worker{n}": [*dramatiq, f"--processes={concurrency}"] for n in range(1, workers + 1)}
    return ready(servers, commands, READY, times=concurrency)


@dataclass(frozen=True)
class Group:
    group: Any
    callback: Message[Any]

    def says(self) -> Said:
        try:
            self.callback.get_result()
        except ResultMissing:
            return Said(self.group.completed_count, False, "waiting")
        return Said(len(self.group), True, "completed")


def start(numbers: Sequence[int]) -> Group:
    made: Any = group((noted.message(number) for number in numbers), broker=broker)
    callback = ended.message()
    made.add_completion_callback(callback)
    return Group(made.run(), callback)
