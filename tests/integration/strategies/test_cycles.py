"""A worker runs one cycle at a time, whichever of its processes is asked."""

import os
import time
from collections.abc import Callable, Iterator

import pytest

from tasks.run_cycle import run_cycle
from tasks.strategies import worker_lock as alone_module
from tasks.strategies.worker_lock import alone
from tests.integration.state import Pause, in_background
from tests.integration.strategies.situations import marked

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_worker_drops_a_tick_while_it_runs_a_cycle(old_strategy: str) -> None:
    marked(3)
    with Pause("one") as pause, in_background(run_cycle) as first:
        assert pause.reached.wait(20)
        assert run_cycle() == {"dropped": 1}
        pause.go_on.set()
        assert first() == {"succeeded": 3, "failed": 0}
    assert run_cycle() == {"succeeded": 0, "failed": 0}


@pytest.fixture
def shared_file() -> Iterator[Callable[[], int]]:
    """The file of a worker's main process; the value begins a cycle in a child of it that then dies."""
    alone_module.open_file()

    def child() -> int:
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with alone() as free:
                    os.write(tell, b"1" if free else b"0")
                    time.sleep(60)
            finally:
                os._exit(0)  # it must not go on as a second pytest
        os.close(tell)
        assert os.read(ready, 1) == b"1"
        os.close(ready)
        return pid

    yield child
    assert alone_module._file is not None
    alone_module._file.close()
    alone_module._file = None


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_processes_of_one_worker_run_one_cycle_at_a_time_and_a_killed_one_frees_it(
    shared_file: Callable[[], int],
) -> None:
    pid = shared_file()
    with alone() as free:
        assert not free
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    with alone() as free:
        assert free
