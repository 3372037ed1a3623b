"""Several reporters at once: started, made ready, and begun at the same moment."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, cast

from benchmarks.errors import BenchError
from benchmarks.reporter import Assignment, Outcome
from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.process import kill_tree, tail

if TYPE_CHECKING:
    from pathlib import Path

#: From the moment all reporters are ready until they begin: more than it takes to send each the moment to begin.
HEAD_START_SECONDS = 0.2


@dataclass(frozen=True)
class Reporters:
    """Reporters that work since `begin`, and their outcomes to come, in the order of the assignments."""

    begin: float
    futures: "list[Future[Outcome]]"

    @property
    def over(self) -> bool:
        return all(one.done() for one in self.futures)

    def outcomes(self) -> list[Outcome]:
        return [one.result() for one in self.futures]


@contextmanager
def reporting(assignments: Sequence[Assignment], servers: Servers) -> Iterator[Reporters]:
    """Start a reporter for each assignment. They work during the block, and all have ended after it."""
    log = servers.directory / "reporters.log"
    with log.open("ab") as errors:
        processes = [_start(servers.environ, errors) for _ in assignments]
        with ThreadPoolExecutor(max(1, len(assignments))) as threads:
            try:
                for process, assignment in zip(processes, assignments, strict=True):
                    _send(process, json.dumps(asdict(assignment)), log)
                for process in processes:
                    _receive(process, log)
                begin = time.monotonic() + HEAD_START_SECONDS
                for process in processes:
                    _send(process, repr(begin), log)
                yield Reporters(begin, [threads.submit(_outcome, one, log) for one in processes])
            finally:
                for process in processes:
                    _end(process)


def deal(tasks: Sequence[int], processes: int) -> list[list[int]]:
    """Deal the tasks out in turn, so that every process has tasks of each execution."""
    return [list(tasks[n::processes]) for n in range(processes)]


def split(tasks: Sequence[int], processes: int) -> list[list[int]]:
    """Split the tasks into ranges of one length, so that every process has executions of its own."""
    size = -(-len(tasks) // processes)
    return [list(tasks[n * size : (n + 1) * size]) for n in range(processes)]


def _start(environ: Mapping[str, str], errors: IO[bytes]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.reporter"],
        cwd=ROOT,
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def _send(process: "subprocess.Popen[str]", line: str, log: "Path") -> None:
    pipe = cast("IO[str]", process.stdin)
    try:
        pipe.write(f"{line}\n")
        pipe.flush()
    except BrokenPipeError:
        raise _failure(process, log) from None


def _receive(process: "subprocess.Popen[str]", log: "Path") -> str:
    line = cast("IO[str]", process.stdout).readline()
    if not line:
        raise _failure(process, log)
    return line


def _outcome(process: "subprocess.Popen[str]", log: "Path") -> Outcome:
    return Outcome(**json.loads(_receive(process, log)))


def _failure(process: "subprocess.Popen[str]", log: "Path") -> BenchError:
    return BenchError(f"A reporter ended with {process.wait()}:\n{tail(log)}")


def _end(process: "subprocess.Popen[str]") -> None:
    kill_tree(process)  # type: ignore[arg-type]
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
