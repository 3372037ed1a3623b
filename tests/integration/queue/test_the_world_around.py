"""A Redis that was flushed, forgot its scripts or is down; real clocks; and no script that reads all of a set."""

import time

import pytest
import redis as redis_py

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pipeline.recovery import release_stale
from harbor_refresh.tasks.queue.claim import Claim, Completed, Released
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.queue.verb_cases import SECOND, Faked
from tests.integration.redis_state import Redis, absent_redis, whole_redis


def test_after_flushall_in_the_middle_everything_works_and_the_old_claim_is_outlived(
    redis: Redis, faked: Faked
) -> None:
    queue, clock = faked
    queue.mark(["1:A"])
    claim = queue.claim("me", 10).claim
    redis.flushall()
    clock.move(1)
    assert queue.take_over(claim, "me") == Claim("me", "", ())
    assert queue.complete(claim) == Completed(1, False)
    assert queue.fail(claim) == Released()
    assert whole_redis(redis) == {}
    assert queue.mark(["1:A"])
    assert queue.claim("me", 10).claim.members == ("1:A",)


def test_a_script_that_is_forgotten_again_after_it_was_loaded_is_an_absence(
    redis: Redis, faked: Faked, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.script_flush()
    monkeypatch.setattr(redis_py.Redis, "script_load", lambda *_: "0" * 40)
    with pytest.raises(QueueUnavailable, match=r"^Redis: "):
        faked[0].mark(["1:A"])


def test_with_redis_down_every_verb_says_so_in_our_own_words() -> None:
    client = absent_redis()
    queue = ExecutionQueue(refresh_settings(), client, client)
    claim = Claim("n1", "7", ("1:A",))
    for verb in (
        lambda: queue.mark(["1:A"]),
        lambda: queue.claim("me", 10),
        lambda: queue.take_over(claim, "me"),
        lambda: queue.complete(claim),
        lambda: queue.fail(claim),
        lambda: release_stale(queue),
        queue.must_send_tick,
        queue.pause,
        queue.stats,
        lambda: list(queue.tokens()),
        lambda: queue.heartbeat("me"),
    ):
        with pytest.raises(QueueUnavailable, match=r"^Redis: "):
            verb()


def test_real_clocks_give_no_stamp_twice(redis: Redis, queue: ExecutionQueue) -> None:
    queue.mark(f"{number}:A" for number in range(1, 51))
    stamps = [queue.claim("me", 1).claim.stamp for _ in range(50)]
    assert len(set(stamps)) == 50
    assert abs(int(stamps[0]) - time.time_ns() // 1000) < 60 * SECOND
