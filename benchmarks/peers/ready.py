"""Workers of a peer, waited for until each has said in its log that it takes jobs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from benchmarks.errors import BenchError
from benchmarks.processes import Processes
from benchmarks.servers import Servers

READY_SECONDS = 60


@contextmanager
def ready(
    servers: Servers, commands: Mapping[str, Sequence[str]], word: str, *, times: int = 1, **environ: str
) -> Iterator[Processes]:
    """Yield the processes when each has written `word` so many times."""
    with Processes(servers, commands, **environ) as processes:
        deadline = time.monotonic() + READY_SECONDS
        for name in commands:
            while processes.log(name).read_text(errors="replace").count(word) < times:
                if failure := processes.failure():
                    raise BenchError(failure)
                if time.monotonic() > deadline:
                    raise BenchError(f"{name} was not ready after {READY_SECONDS} s.")
                time.sleep(0.1)
        yield processes
