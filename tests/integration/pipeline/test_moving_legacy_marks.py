"""Harbor's own marks as they are moved: what the script changes, and how often ticks look."""

from typing import Any

import pytest

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.pipeline import legacy_marks
from harbor_refresh.tasks.pipeline.legacy_marks import LegacyMarks
from harbor_refresh.tasks.queue.connection import patient
from harbor_refresh.tasks.queue.keys import HARBORS_KEY, HARBORS_SET, SEEDS_KEY
from tests.integration.redis_state import PREFIX, Redis, queue_with, settings_with, whole_redis

REST = f"{PREFIX}legacy_rest"
KEY = HARBORS_KEY.encode().replace(b"%s", b"%b")


def others(redis: Redis) -> set[bytes]:
    """Every key that is not ours."""
    return {key for key in redis.scan_iter(count=1000) if not key.startswith(b"cache:execution:refresh:")}


def transfer_with(redis: Redis, **conf: Any) -> LegacyMarks:
    return LegacyMarks(settings_with(**conf), redis, redis)


def taken_by(transfer: LegacyMarks) -> int:
    """How many marks there were, of which all are taken."""
    return sum(count for _, count in transfer.pages())


UNREADABLE = (
    b"cache:execution:id:none:vendor:X:status_outdate",
    b"cache:execution:id:0:vendor:X:status_outdate",
    b"cache:execution:id:1:vendor:a:b:status_outdate",
    b"cache:execution:id:1:vendor::status_outdate",
    b"cache:execution:id:12345678901234567890:vendor:X:status_outdate",
    b"other:execution:id:1:vendor:X:status_outdate",
)
UNRELATED = (b"execution:id:1:vendor:X:status_outdated", b"task:id:1:vendor:X:status_outdate", b"celery")


def test_a_look_takes_marks_of_every_kind_and_leaves_what_it_cannot_read(redis: Redis) -> None:
    for key in (
        HARBORS_KEY % (7, "SCAN ALL*?[x]"),
        SEEDS_KEY % (8, "B-C"),
        HARBORS_KEY % (9, "B"),
        *UNREADABLE,
        *UNRELATED,
    ):
        redis.set(key, "")
    redis.sadd(HARBORS_SET, "9:B", "10:C", "nothing", "1:a:b")
    assert transfer_with(redis).look() == 5
    state = whole_redis(redis, observed=True)
    assert state.keys() == {"queue:v2", "waiting", "legacy_cursor", "legacy_rest"}
    assert state["queue:v2"] == set(state["waiting"]) == {"7:SCAN ALL*?[x]", "8:B-C", "9:B", "10:C"}
    assert others(redis) == {*UNREADABLE, *UNRELATED, HARBORS_SET.encode()}
    assert redis.smembers(HARBORS_SET) == {b"nothing", b"1:a:b"}


def test_a_mark_that_waits_already_keeps_its_time(redis: Redis) -> None:
    queue_with(redis).mark(["7:A"])
    before = redis.zscore(f"{PREFIX}waiting", "7:A")
    redis.set(HARBORS_KEY % (7, "A"), "")
    assert transfer_with(redis).look() == 1
    assert redis.zscore(f"{PREFIX}waiting", "7:A") == before
    assert others(redis) == set()


def scans(redis: Redis) -> int:
    return int(redis.info("commandstats").get("cmdstat_scan", {}).get("calls", 0))


def test_looks_of_all_processes_together_keep_to_the_rate_and_go_on_where_the_last_one_stopped(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legacy_marks, "LOOKS_A_TICK", 4)
    redis.mset({f"other:{number}": "" for number in range(20_000)})
    redis.mset({HARBORS_KEY % (number, "A"): "" for number in range(1, 51)})
    one, other = transfer_with(redis, legacy_rate=1_000), transfer_with(redis)
    redis.config_resetstat()
    taken = one.look()
    assert 0 < redis.pttl(REST) <= 4 * pacing.LOOK
    assert other.look() == 0
    assert (scans(redis), taken < 50) == (4, True)
    for _ in range(20_000 // (4 * pacing.LOOK) + 5):
        redis.delete(REST)  # as if the time had passed
        taken += other.look()
    assert taken == redis.scard(f"{PREFIX}queue:v2") == 50
    assert 1_000 < redis.pttl(REST) <= 1_000 * pacing.ROUND_SECONDS, "a small server is not read again and again"


def test_a_look_whose_process_died_is_made_again(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then, the process may be at work, so no other looks."""
    redis.mset({HARBORS_KEY % (number, "A"): "" for number in range(1, 2_001)})
    transfer = transfer_with(redis)

    def die(point: str, _: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(crash_points, "handlers", [die])
        with pytest.raises(KeyboardInterrupt):
            transfer.look()
    assert transfer.look() == 0
    redis.delete(REST)
    transfer.look()
    assert redis.scard(f"{PREFIX}queue:v2") == 2_000


@pytest.mark.parametrize("cursor", ["x", "-1", "", b"\xff"])
def test_a_note_that_makes_no_sense_stops_no_look(redis: Redis, cursor: str | bytes) -> None:
    redis.set(f"{PREFIX}legacy_cursor", cursor)
    redis.set(HARBORS_KEY % (7, "A"), "")
    assert transfer_with(redis).look() == 1


def test_a_queue_that_refuses_a_member_leaves_the_mark(redis: Redis) -> None:
    """The member is added before the key is deleted."""
    redis.set(f"{PREFIX}queue:v2", "not a set")
    redis.set(HARBORS_KEY % (7, "A"), "")
    transfer = transfer_with(patient())
    for verb in (transfer.look, lambda: taken_by(transfer)):
        with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
            verb()
    assert others(redis) == {KEY % (b"7", b"A")}


def test_what_a_worker_has_completed_meanwhile_is_not_exported(redis: Redis) -> None:
    queue, transfer = queue_with(redis), transfer_with(redis)
    queue.mark(["1:A"])
    claim = queue.claim("node", 1).claim
    steps = transfer.export(as_set=False)
    queue.complete(claim)
    queue.mark(["2:B"])
    marks = [(HARBORS_KEY % (1, "A"), "1:A"), (HARBORS_KEY % (3, "C"), "3:C")]
    assert transfer._move(marks, "", back=True) == 0
    assert sum(steps) == 1
    assert others(redis) == {KEY % (b"2", b"B")}


def test_a_queue_that_is_harbors_set_is_not_taken(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.queue.keys.queue_key", lambda prefix: HARBORS_SET)
    redis.sadd(HARBORS_SET, "1:A")
    redis.set(HARBORS_KEY % (2, "B"), "")
    transfer = transfer_with(redis)
    assert taken_by(transfer) == 1
    assert redis.smembers(HARBORS_SET) == {b"1:A", b"2:B"}
