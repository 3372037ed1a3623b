"""Trace contexts beside the queue: bounded, and dropped exactly."""

from unittest.mock import ANY

import pytest

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.queue.traces import Kept, Traces, traces
from tests.integration.redis_state import PREFIX, Redis

KEY = f"{PREFIX}traces"


@pytest.fixture
def kept(redis: Redis) -> Traces:
    return traces()


def contexts(kept: Traces, member: str) -> list[str]:
    return [text for one in kept.of([member]).values() for _, text in one.contexts]


def test_contexts_are_kept_in_the_order_of_their_reports_and_only_the_latest_of_many(kept: Traces) -> None:
    for number in range(6):
        assert kept.keep(["1:A", "2:B"], f"c{number} state={number}") == 2
    assert contexts(kept, "1:A") == [f"c{number} state={number}" for number in range(2, 6)]
    assert kept.of(["1:A", "3:C"]) == {"1:A": Kept("1:A", ANY)}
    stamps = [stamp for stamp, _ in kept.of(["1:A"])["1:A"].contexts]
    assert stamps == sorted(stamps)


def test_a_full_hash_takes_no_other_members_and_expires_after_it_was_begun(kept: Traces, redis: Redis) -> None:
    assert kept.keep([f"{number}:A" for number in range(1, 1_001)], "c") == pacing.MOST_TRACED
    assert redis.hlen(KEY) == pacing.MOST_TRACED
    assert kept.keep(["1:A", "2000:A"], "d") == 1
    assert contexts(kept, "1:A") == ["c", "d"]
    assert contexts(kept, "2000:A") == []
    redis.pexpire(KEY, 50_000)
    kept.keep(["1:A"], "e")
    assert 0 < redis.pttl(KEY) <= 50_000
    many = kept.of([f"{number}:A" for number in range(1, 3_001)])
    assert len(many) == pacing.MOST_TRACED


def test_only_what_was_read_is_dropped(kept: Traces, redis: Redis) -> None:
    kept.keep(["1:A", "2:B"], "old")
    read = kept.of(["1:A", "2:B"])
    kept.keep(["2:B"], "new")
    kept.keep(["3:C"], "new")
    kept.drop(read.values())
    assert {member: contexts(kept, member) for member in ("1:A", "2:B", "3:C")} == {
        "1:A": [],
        "2:B": ["new"],
        "3:C": ["new"],
    }
    kept.drop(read.values())
    kept.drop(kept.of(["2:B", "3:C"]).values())
    assert not redis.exists(KEY)


def test_without_members_nothing_is_asked(kept: Traces, redis: Redis) -> None:
    kept.keep([], "c")
    kept.drop([])
    assert kept.of([]) == {}
    assert kept.of([f"{number}:A" for number in range(200)]) == {}
    assert not redis.exists(KEY)
