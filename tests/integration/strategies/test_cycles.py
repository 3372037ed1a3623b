"""A worker runs one cycle at a time, whichever of its processes is asked."""

import os
import signal

import pytest

from harbor_refresh.tasks.celery_tasks import run_cycle
from harbor_refresh.tasks.strategies.exclusion import only_cycle_of_this_worker
from tests.integration.concurrency import Pause, in_background
from tests.integration.strategies.marked_executions import marked

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_worker_drops_a_tick_while_it_runs_a_cycle(old_strategy: str) -> None:
    marked(3)
    with Pause("one") as pause, in_background(run_cycle) as first:
        pause.wait_until_reached()
        assert run_cycle() == {"dropped": 1}
        pause.go_on.set()
        assert first() == {"succeeded": 3, "failed": 0}
    assert run_cycle() == {"succeeded": 0, "failed": 0}


def child_with_lock() -> int:
    """Fork a process that takes the lock and holds it until it is killed."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with only_cycle_of_this_worker() as locked:
                os.write(tell, b"1" if locked else b"0")
                signal.pause()
        finally:
            os._exit(0)  # it must not go on as a second pytest
    os.close(tell)
    assert os.read(ready, 1) == b"1"
    os.close(ready)
    return pid


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_processes_of_one_worker_run_one_cycle_at_a_time_and_a_killed_one_frees_it() -> None:
    pid = child_with_lock()
    with only_cycle_of_this_worker() as locked:
        assert not locked
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    with only_cycle_of_this_worker() as locked:
        assert locked
