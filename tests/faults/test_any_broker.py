"""The filesystem transport of kombu is the broker: nothing is asked of a broker but to carry messages. What is
killed or lost comes back from the rows. Tests with Redis and with RabbitMQ are in files of their own."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.brokers import uses_files
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import ends, runs
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """Its messages are files in this folder."""
    with uses_files(tmp_path / "broker") as env:
        cluster.env |= env
        yield tmp_path / "broker"
        cluster.end()


def test_jobs_come_back_after_a_lost_broker_a_killed_process_and_a_killed_worker(
    cluster: Cluster, worker: Callable[..., Member], folder: Path, log: Path
) -> None:
    cluster.beat()
    first = worker("first")
    waiting = [f"early{number}" for number in range(30)]
    execution = start("SCAN", jobs=[team.held.s("a"), team.held.s("b"), *map(team.copy.s, waiting)])
    wait_for(lambda: runs(log) == {"held a": 1, "held b": 1}, "two to run", log=first.log)
    for message in folder.iterdir():
        message.unlink(missing_ok=True)
    os.kill(int(log.read_text().split()[2]), signal.SIGKILL)
    wait_for(
        lambda: log.read_text().count("held") == 3, "the job of the killed process to run again", log=first.log
    )
    for name in "ab":
        for number in (1, 2):
            log.with_name(f"{name}.{number}").touch()
    ends(execution, "Success", first)
    assert set(Job.objects.values_list("state", flat=True)) == {"ended"}
    assert {name: runs(log)[f"copy {name}"] for name in waiting} == dict.fromkeys(waiting, 1)
    assert runs(log)["held a"] + runs(log)["held b"] == 3

    execution = start("SCAN", jobs=[team.held.s("c"), team.held.s("d"), team.copy.s("late")])
    wait_for(lambda: runs(log)["held c"] and runs(log)["held d"], "two others to run", log=first.log)
    first.kill()
    for name in "cd":
        log.with_name(f"{name}.2").touch()
    ends(execution, "Success", worker("second"))
    assert set(Job.objects.values_list("state", flat=True)) == {"ended"}
    assert [runs(log)[one] for one in ("held c", "held d", "copy late")] == [2, 2, 1]
