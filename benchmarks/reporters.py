"""Several reporters at once: started, set up, and let loose at the same moment."""

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
from benchmarks.ground import ROOT, Ground
from benchmarks.reporter import Job, Outcome
from harbor_refresh.local.process import kill_tree, tail

if TYPE_CHECKING:
    from pathlib import Path

#: From the moment all are ready until they begin: more than it takes to tell each of them.
HEAD_START_SECONDS = 0.2


@dataclass(frozen=True)
class Running:
    """Reporters at work since `begin`, and what will have become of them, in the order of their jobs."""

    begin: float
    futures: "list[Future[Outcome]]"

    @property
    def over(self) -> bool:
        return all(one.done() for one in self.futures)

    def outcomes(self) -> list[Outcome]:
        return [one.result() for one in self.futures]


@contextmanager
def reporting(jobs: Sequence[Job], ground: Ground) -> Iterator[Running]:
    """Start a reporter for each job; they work while the block runs, and none outlives it."""
    log = ground.directory / "reporters.log"
    with log.open("ab") as errors:
        processes = [_start(ground.environ, errors) for _ in jobs]
        with ThreadPoolExecutor(max(1, len(jobs))) as threads:
            try:
                for process, job in zip(processes, jobs, strict=True):
                    _tell(process, json.dumps(asdict(job)), log)
                for process in processes:
                    _hear(process, log)
                begin = time.monotonic() + HEAD_START_SECONDS
                for process in processes:
                    _tell(process, repr(begin), log)
                yield Running(begin, [threads.submit(_outcome, one, log) for one in processes])
            finally:
                for process in processes:
                    _end(process)


def shares(tasks: Sequence[int], processes: int) -> list[list[int]]:
    """Deal the tasks out like cards: every process has some of each execution."""
    return [list(tasks[n::processes]) for n in range(processes)]


def parts(tasks: Sequence[int], processes: int) -> list[list[int]]:
    """Cut the tasks into runs of one length: every process has executions of its own."""
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


def _tell(process: "subprocess.Popen[str]", line: str, log: "Path") -> None:
    pipe = cast("IO[str]", process.stdin)
    try:
        pipe.write(f"{line}\n")
        pipe.flush()
    except BrokenPipeError:
        raise _failure(process, log) from None


def _hear(process: "subprocess.Popen[str]", log: "Path") -> str:
    line = cast("IO[str]", process.stdout).readline()
    if not line:
        raise _failure(process, log)
    return line


def _outcome(process: "subprocess.Popen[str]", log: "Path") -> Outcome:
    return Outcome(**json.loads(_hear(process, log)))


def _failure(process: "subprocess.Popen[str]", log: "Path") -> BenchError:
    return BenchError(f"A reporter ended with {process.wait()}:\n{tail(log)}")


def _end(process: "subprocess.Popen[str]") -> None:
    kill_tree(process)  # type: ignore[arg-type]
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
