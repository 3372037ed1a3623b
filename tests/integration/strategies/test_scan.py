"""The design that scans for a key per mark: every instance does all of the work."""

import pytest
from pytest_django import Settings

from benchmarks.designs import strategy
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.pipeline.legacy_marks import export_marks, legacy_marks
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.connection import connect
from harbor_refresh.tasks.queue.keys import harbors_keys, member_of_harbors
from harbor_refresh.tasks.strategies.older import Scan
from tests import servers
from tests.integration.concurrency import Pause, in_background
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import ODD, marked, statuses

SEEDS = "execution:id:{}:vendor:X:status_outdate"

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_scan_marks_with_the_keys_of_the_older_release(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_STRATEGY = "scan"
    (pk,) = marked(1)
    assert redis.keys("*") == [f"cache:execution:id:{pk}:vendor:REPLICATION:status_outdate".encode()]


@pytest.mark.parametrize("form", ["cache:execution:id:{}:vendor:X:status_outdate", SEEDS])
def test_scan_reads_and_removes_the_keys_of_harbor_and_those_without_its_prefix(
    form: str, settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = "scan"
    (pk,) = marked(1, "X")
    redis.flushall()
    assert strategy().lost([f"{pk}:X"]) == [f"{pk}:X"]
    redis.set(form.format(pk), "")
    redis.set(SEEDS.format(pk), "")
    assert (strategy().backlog(), strategy().lost([f"{pk}:X"])) == (1, [])
    assert strategy().cycle().succeeded == 1, "two keys of one execution are one mark"
    assert (statuses([pk]), redis.keys("*")) == ({"Success"}, [])


def test_a_cycle_reads_a_thousand_keys_a_step(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "scan"
    marked(300)
    client = connect(servers.redis.url, 2, tries=1)
    client.config_resetstat()
    assert len(Scan().find_marked()) == 300
    steps = client.info("commandstats")["cmdstat_scan"]["calls"]
    client.close()
    assert steps == 1


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
        pause.wait_until_reached()
        second = strategy().cycle()
        pause.go_on.set()
        assert (first().succeeded, second.succeeded) == (20, 20)
    assert set(Execution.objects.values_list("revision", flat=True)) == {2}
    assert statuses(ids) == {"Success"}


def test_the_keys_of_marks_are_read_as_they_are_written() -> None:
    for vendor in ODD:
        for key in harbors_keys(f"7:{vendor}"):
            assert member_of_harbors(key.encode()) == f"7:{vendor}"


def test_marks_move_with_a_change_of_the_strategy_to_claim_and_back(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_STRATEGY = "scan"
    ids = marked(3)
    members = {f"{pk}:REPLICATION" for pk in ids}
    settings.REFRESH_STRATEGY = "claim"
    legacy_marks().look()
    assert {member.decode() for page in execution_queue().pages_of_members() for member in page} == members
    assert export_marks() == 3
    settings.REFRESH_STRATEGY = "scan"
    assert set(Scan().find_marked()) == members
