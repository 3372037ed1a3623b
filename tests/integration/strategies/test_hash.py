"""The design that shares by number: each instance refreshes its own, and needs a number to start."""

import pytest
from pytest_django import Settings

from benchmarks.designs import STRATEGIES, strategy
from harbor_refresh.executions.errors import NoInstance
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.strategies.older import refuse_without_a_number, this_instance
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import left_in_redis, marked, statuses

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_each_instance_refreshes_exactly_its_own(hashing: Settings, redis: Redis) -> None:
    ids = marked(30)
    for number in range(3):
        hashing.CORE_INSTANCE_ID = number
        own = [pk for pk in ids if pk % 3 == number]
        assert strategy().cycle().succeeded == len(own) > 0
        assert statuses(own) == {"Success"}
        assert set(Execution.objects.filter(status="Success").values_list("pk", flat=True)) == {
            pk for pk in ids if pk % 3 <= number
        }
    assert left_in_redis(redis) == set()


def test_members_that_nobody_can_read_are_dropped_from_the_set(
    hashing: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.sadd("cache:execution:refresh:queue:v2", "nonsense", b"1:\xff")
    for name in ("upstream", "hash"):
        hashing.REFRESH_STRATEGY = name
        strategy().cycle()
    assert left_in_redis(redis) == set()
    assert caplog.text.count("Dropped a member that cannot be read") == 2


@pytest.mark.parametrize(
    ("given", "host", "line"),
    [
        ((0, None), "core-1", "CORE_INSTANCE_TOTAL: got nothing, takes "),
        ((3, 3), "core-1", "CORE_INSTANCE_ID: got '3', takes a whole number from 0 to 2"),
        ((None, 3), "core", "CORE_INSTANCE_ID: got nothing, and the host name 'core' ends in no ordinal; takes "),
        ((None, 3), "core-3", "CORE_INSTANCE_ID: got '3' from the host name 'core-3', takes "),
    ],
)
def test_a_worker_without_a_possible_number_does_not_start_and_says_why_in_one_line(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch, given: tuple[int | None, int | None], host: str, line: str
) -> None:
    hashing.CORE_INSTANCE_ID, hashing.CORE_INSTANCE_TOTAL = given
    monkeypatch.setattr("socket.gethostname", lambda: host)
    with pytest.raises(SystemExit) as refused:
        refuse_without_a_number()
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)
    with pytest.raises(NoInstance):
        strategy().cycle()
    marked(1)  # who only marks needs no number


def test_a_number_comes_from_the_host_name_unless_it_is_given(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "harbor-core-2")
    assert this_instance() == (0, 3)
    hashing.CORE_INSTANCE_ID = None
    assert this_instance() == (2, 3)


def test_only_the_hash_design_refuses_to_start_without_a_number(settings: Settings) -> None:
    settings.CORE_INSTANCE_ID = settings.CORE_INSTANCE_TOTAL = None
    refused = set()
    for name in STRATEGIES:
        settings.REFRESH_STRATEGY = name
        try:
            refuse_without_a_number()
        except SystemExit:
            refused.add(name)
    assert refused == {"hash"}
