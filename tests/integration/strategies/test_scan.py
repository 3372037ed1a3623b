"""The design that scans for a key per mark: every instance does all of the work."""

import pytest
from pytest_django import Settings

from benchmarks.designs import strategy
from executions.models import Execution
from tasks.queue.connection import connect
from tasks.strategies import outdated_keys
from tasks.strategies.scan import Scan
from tests import servers
from tests.integration.concurrency import Pause, in_background
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import ODD, marked, statuses

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_scan_marks_with_the_keys_of_the_older_release(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_STRATEGY = "scan"
    (pk,) = marked(1)
    assert redis.keys("*") == [f"execution:id:{pk}:vendor:REPLICATION:status_outdate".encode()]


def test_scan_reads_ten_keys_a_step_as_the_original_does(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "scan"
    assert Scan.PAGE == 10
    marked(300)
    client = connect(servers.redis.url, 2, tries=1)
    client.config_resetstat()
    assert len(Scan().find_marked()) == 300
    steps = client.info("commandstats")["cmdstat_scan"]["calls"]
    client.close()
    assert steps >= 15


def test_keys_that_only_look_like_marks_are_told_and_touched_by_nobody(
    settings: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REFRESH_STRATEGY = "scan"
    strange = {
        b"execution:id:none:vendor:X:status_outdate",
        b"execution:id:0:vendor:X:status_outdate",
        b"execution:id:1:vendor:a:b:status_outdate",
        b"execution:id:1:vendor::status_outdate",
        b"execution:id:1:vendor:\xff:status_outdate",
    }
    others = {b"execution:id:1:vendor:X:status_outdated", b"execution:id:1", b"task:id:1:vendor:X:status_outdate"}
    for key in strange | others:
        redis.set(key, "")
    (pk,) = marked(1)
    strategy().cycle()
    assert statuses([pk]) == {"Success"}
    assert set(redis.keys("*")) == strange | others
    assert caplog.text.count("a member that cannot be read") == len(strange)
    assert "more members that cannot be read" not in caplog.text
    assert strategy().backlog() == 0


def test_every_instance_of_scan_does_all_of_the_work(settings: Settings) -> None:
    """The flaw, shown: what each found at the beginning it refreshes, whoever has done it meanwhile."""
    settings.REFRESH_STRATEGY = "scan"
    ids = marked(20)
    with Pause("one") as pause, in_background(strategy().cycle) as first:
        assert pause.reached.wait(20)
        second = strategy().cycle()
        pause.go_on.set()
        assert (first().succeeded, second.succeeded) == (20, 20)
    assert set(Execution.objects.values_list("revision", flat=True)) == {2}
    assert statuses(ids) == {"Success"}


def test_the_keys_of_marks_are_read_as_they_are_written() -> None:
    for vendor in ODD:
        assert outdated_keys.readable(outdated_keys.key(f"7:{vendor}").encode()) == f"7:{vendor}"
