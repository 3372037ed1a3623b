"""Harbor's set is the queue: its cores and our workers take members from it, and the first has them."""

import pytest
from redis import Redis

from harbor_refresh.tasks.pipeline.diagnosis import diagnose
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.keys import HARBORS_KEY, HARBORS_SET
from tests.faults.cluster import Cluster
from tests.harbor.rows import execution, stored, task
from tests.waiting import wait_for

#: Its own marks and the keys of ours that may be left when all work is done, but those of the broker.
OURS = "cache:execution:refresh:"


def keys_of_the_queue(redis: Redis) -> set[str]:
    return {key.decode() for key in redis.keys("*") if b"queue" in key or b"status_outdate" in key}


# in this process


@pytest.mark.usefixtures("attached")
def test_the_members_of_harbor_are_claimed_and_every_other_key_has_our_prefix(redis: Redis) -> None:
    queue = execution_queue()
    redis.sadd(HARBORS_SET, "1:IMAGE_SCAN", "2:REPLICATION")
    queue.mark(["3:GARBAGE_COLLECTION"])
    assert redis.scard(HARBORS_SET) == 3
    batch = queue.claim("me", 10)
    assert sorted(batch.claim.members) == ["1:IMAGE_SCAN", "2:REPLICATION", "3:GARBAGE_COLLECTION"]
    queue.release(batch.claim)
    queue.heartbeat("me")
    assert redis.smembers(HARBORS_SET) == {b"1:IMAGE_SCAN", b"2:REPLICATION", b"3:GARBAGE_COLLECTION"}
    others = {key.decode() for key in redis.keys("*")} - {HARBORS_SET}
    assert others
    assert all(key.startswith(OURS) for key in others), others


@pytest.mark.usefixtures("attached")
def test_what_a_core_took_is_not_claimed_and_its_age_is_forgotten(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["1:A", "2:A", "3:A"])
    taken = {one.decode() for one in redis.spop(HARBORS_SET, 2)}
    assert [one for one, _ in queue.oldest_waiting(10)] == sorted({"1:A", "2:A", "3:A"} - taken)
    assert set(queue.claim("me", 10).claim.members) == {"1:A", "2:A", "3:A"} - taken
    assert queue.stats().waiting_since == 0


@pytest.mark.usefixtures("attached")
def test_a_member_that_no_core_could_read_is_dropped_and_stops_no_claim(redis: Redis) -> None:
    redis.sadd(HARBORS_SET, "no id", "0:A", b"\xff", "7:", "8:A")
    batch = execution_queue().claim("me", 10)
    assert (batch.claim.members, len(batch.unreadable)) == (("8:A",), 4)
    assert (redis.exists(HARBORS_SET), redis.scard(f"{OURS}processing")) == (0, 1)


@pytest.mark.usefixtures("attached")
def test_a_mark_with_the_vendor_of_the_tasks_is_where_its_execution_is(redis: Redis) -> None:
    """The tasks of Harbor's SCAN_ALL are of the vendor IMAGE_SCAN, and its marks have the vendor of the tasks."""
    of = execution(vendor_type="SCAN_ALL")
    task(of, "Success", vendor_type="IMAGE_SCAN")
    redis.sadd(HARBORS_SET, f"{of}:IMAGE_SCAN")
    found = diagnose(of)
    assert found.where is not None
    assert (found.where.is_queued, found.comparison.vendor_type) == (True, "SCAN_ALL")
    assert "its mark was lost" not in " ".join(found.findings)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A tick is sent."""
    sent: list[None] = []
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.wakeup.send_tick", lambda: sent.append(None))
    return sent


@pytest.mark.usefixtures("attached", "redis")
def test_recovery_sends_a_tick_that_looks_for_keys_although_the_set_is_empty(sent: list[None]) -> None:
    recover()
    assert sent == [None]
    execution_queue().pause()
    recover()
    assert sent == [None], "the database is down"


# in processes


#: The tick of the schedule and reconcile are an hour away, so all that is found is found by the look of recovery.
LATE = {"EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "3600"}


def test_a_key_of_harbor_is_found_by_the_look_of_recovery(cluster: Cluster, redis: Redis) -> None:
    of = execution()
    task(of, "Success")
    cluster.beat({"Reconcile": 3600}, **LATE)
    worker = cluster.worker(**LATE)
    wait_for(lambda: redis.exists(f"{OURS}legacy_cursor"), "the first look", seconds=60, log=worker.log)
    redis.set(HARBORS_KEY % (of, "REPLICATION"), "")
    wait_for(lambda: stored(of, "status") == ("Success",), "the refresh", seconds=60, log=worker.log)
    wait_for(lambda: not redis.exists(f"{OURS}processing"), "the completion", log=worker.log)
    assert keys_of_the_queue(redis) <= {f"{OURS}queues"}
