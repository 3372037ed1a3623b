"""Harbor's set is the queue: its cores and our workers take members from it, and the first has them."""

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from examples.simulation.invariants import violations
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.pipeline.recovery import recover
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.keys import HARBORS_KEY, HARBORS_SET
from harbor_refresh.tasks.schedule import ROWS
from tests import servers
from tests.faults.cluster import Cluster
from tests.harbor.databases import ATTACHED
from tests.harbor.rows import asked, execution, stored, task
from tests.integration.concurrency import in_background
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


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A tick is sent."""
    sent: list[None] = []
    monkeypatch.setattr("harbor_refresh.tasks.pipeline.wakeup.send_tick", lambda: sent.append(None))
    return sent


@pytest.mark.usefixtures("attached")
def test_recovery_sends_a_tick_for_marks_that_woke_none(
    redis: Redis, sent: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "LEGACY_KEYS_PER_SECOND", 0)
    recover()
    assert sent == []
    redis.sadd(HARBORS_SET, "1:A")
    recover()
    assert sent == [None]


@pytest.mark.usefixtures("attached", "redis")
def test_recovery_sends_a_tick_that_looks_for_keys_although_the_set_is_empty(sent: list[None]) -> None:
    recover()
    assert sent == [None]
    execution_queue().pause()
    recover()
    assert sent == [None], "the database is away"


def test_each_recovery_finds_that_a_look_for_keys_is_due() -> None:
    (seconds,) = (row.seconds for row in ROWS if row.task == "tasks.recover_stale")
    assert seconds > pacing.ROUND_SECONDS


@pytest.mark.usefixtures("attached")
def test_a_key_of_harbor_that_is_no_set_is_not_dropped(redis: Redis) -> None:
    redis.set(HARBORS_SET, "of another program")
    redis.set(f"{OURS}processing", "of another program")
    assert execution_queue().drop_foreign_keys() == [f"{OURS}processing"]
    assert redis.get(HARBORS_SET) == b"of another program"


# in processes


@pytest.fixture
def cluster(attached: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(attached, tmp_path)
    cluster.env.update(ATTACHED)
    yield cluster
    cluster.end()


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


EXECUTIONS = 60


def test_workers_and_a_core_share_the_marks_and_every_status_is_right(
    cluster: Cluster, attached: str, redis: Redis
) -> None:
    """A core takes some of the marks, and refreshes as Harbor's does."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    tasks = {of: [task(of, "Running") for _ in range(3)] for of in (execution() for _ in range(EXECUTIONS))}
    cluster.beat({"Reconcile": 3600}, **LATE)
    cluster.worker(**LATE)
    core = psycopg.connect(servers.postgres.url_for(attached), autocommit=True)

    def report() -> None:
        changes = [(of, pk) for of, its in tasks.items() for pk in its for _ in range(2)]
        chance.shuffle(changes)
        for of, pk in changes:
            change_task(core, pk, chance.choice(["Running", "Success", "Error", "Stopped", "Pending"]))
            redis.sadd(HARBORS_SET, f"{of}:REPLICATION")
            if chance.random() < 0.02:
                for member in redis.spop(HARBORS_SET, chance.choice([1, 5, 100])):
                    refresh_as_a_core(core, int(member.partition(b":")[0]))

    with in_background(report) as reported:
        reported()
    core.close()
    wait_for(lambda: violations(at_most=3) == [], f"K1 to K4 to hold, with the seed {seed}")
    assert asked("SELECT count(*) > 0 FROM execution_status_change") == [(True,)]
    assert "ERROR" not in cluster.logs()
    assert keys_of_the_queue(redis) <= {f"{OURS}queues"}


def change_task(core: psycopg.Connection, pk: int, status: str) -> None:
    ended = status in ("Success", "Error", "Stopped")
    core.execute(
        "UPDATE task SET status = %s, status_code = %s, run_count = run_count + 1,"
        " update_time = date_trunc('second', now()),"
        " end_time = CASE WHEN %s THEN date_trunc('second', now()) ELSE '0001-01-01' END WHERE id = %s",
        [status, 3 if ended else 2, ended, pk],
    )


def refresh_as_a_core(core: psycopg.Connection, of: int) -> None:
    """The four statements of Harbor's refresh, each committed by itself."""
    for _ in range(5):
        row = core.execute("SELECT revision FROM execution WHERE id = %s", [of]).fetchone()
        assert row is not None
        words = {
            status for (status,) in core.execute("SELECT DISTINCT status FROM task WHERE execution_id = %s", [of])
        }
        unfinished = words & {"Pending", "Scheduled", "Running"}
        status = "Running" if unfinished else next(one for one in ("Error", "Stopped", "Success") if one in words)
        written = core.execute(
            "UPDATE execution SET status = %s, revision = revision + 1, update_time = now()"
            " WHERE id = %s AND revision = %s",
            [status, of, row[0]],
        )
        if written.rowcount:
            core.execute(
                "UPDATE execution SET end_time = CASE WHEN status IN ('Error', 'Stopped', 'Success')"
                " THEN (SELECT max(end_time) FROM task WHERE execution_id = %s) END WHERE id = %s",
                [of, of],
            )
            return
