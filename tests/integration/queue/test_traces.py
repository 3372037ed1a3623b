"""Trace contexts beside the queue: bounded, and dropped exactly."""

import pytest

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.queue.traces import Traces, traces
from tests.integration.redis_state import PREFIX, Redis

KEY = f"{PREFIX}traces"


@pytest.fixture
def kept(redis: Redis) -> Traces:
    return traces()


def test_the_context_of_the_latest_report_is_kept(kept: Traces) -> None:
    kept.keep(["1:A", "2:B"], "old")
    kept.keep(["2:B"], "new state=1")
    assert kept.of(["1:A", "2:B", "3:C"]) == {"1:A": "old", "2:B": "new state=1"}


def test_a_full_hash_takes_no_more_and_expires_after_it_was_begun(kept: Traces, redis: Redis) -> None:
    kept.keep([f"{number}:A" for number in range(1, 401)], "c")
    assert 0 < redis.pttl(KEY) <= pacing.TRACES_TTL_MS
    redis.pexpire(KEY, 50_000)
    kept.keep([f"{number}:A" for number in range(401, 1_001)], "c")
    assert 0 < redis.pttl(KEY) <= 50_000
    kept.keep(["1:A", "2000:A"], "d")
    many = kept.of([f"{number}:A" for number in range(1, 3_001)])
    assert many == {f"{number}:A": "c" for number in range(1, pacing.MOST_TRACED + 1)}


def test_only_what_was_read_is_dropped(kept: Traces, redis: Redis) -> None:
    kept.keep(["1:A", "2:B"], "old")
    read = kept.of(["1:A", "2:B"])
    kept.keep(["2:B"], "new")
    kept.keep(["3:C"], "new")
    for _ in range(2):
        kept.drop(read)
        assert kept.of(["1:A", "2:B", "3:C"]) == {"2:B": "new", "3:C": "new"}
    kept.drop(kept.of(["2:B", "3:C"]))
    assert not redis.exists(KEY)


def test_without_members_nothing_is_asked(kept: Traces, redis: Redis) -> None:
    kept.keep([], "c")
    kept.drop({})
    assert kept.of([]) == {}
    assert kept.of([f"{number}:A" for number in range(200)]) == {}
    assert not redis.exists(KEY)
