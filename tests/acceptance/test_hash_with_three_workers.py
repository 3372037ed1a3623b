"""The strategies in which a tick must reach every worker once, with real workers."""

import time
from collections.abc import Callable

import pytest
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.celery_tasks import broadcast, claim_batch
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, succeed
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

TICK = "harbor_refresh.ticks"


@pytest.fixture
def hashing(cluster: Cluster, settings: Settings) -> Cluster:
    settings.REFRESH_STRATEGY = "hash"
    cluster.env |= {"REFRESH_STRATEGY": "hash", "CORE_INSTANCE_TOTAL": "3"}
    return cluster


def refreshed_by(worker: Member) -> list[int]:
    """Count the executions of each cycle, without cycles that found none."""
    words = [line.partition("status done, ")[2].split() for line in worker.text().splitlines()]
    return [int(one[0]) for one in words if one and one[0] != "0"]


def are_true(ids: list[int]) -> Callable[[], bool]:
    return lambda: not Execution.objects.filter(pk__in=ids).exclude(status="Success").exists()


def ticked_until_true(ids: list[int]) -> Callable[[], bool]:
    """Tick until all are true: a worker is ready a moment before it listens for cycles, and misses a tick of that
    moment."""

    def are_true_now() -> bool:
        claim_batch.apply_async()  # sends nothing while enough ticks wait
        return are_true(ids)()

    return are_true_now


def hears_cycles(worker: Member) -> bool:
    broadcast()
    return "tasks.run_cycle" in worker.text().partition(" ready.")[2]


def received(worker: Member) -> int:
    """Count the cycles that it has received."""
    return sum("run_cycle" in line and "received" in line for line in worker.text().splitlines())


def nothing_is_left(redis: Redis) -> None:
    """No keys but marks and bindings of workers, as soon as no tick is in progress."""
    known = (b"_kombu.binding", b"cache:execution:refresh:", b"unacked_mutex", TICK.encode())
    wait_for(lambda: all(key.startswith(known) for key in redis.keys("*")), "no key to be left")


def bindings(redis: Redis) -> set[bytes]:
    return set(redis.smembers("_kombu.binding.harbor_refresh.cycles"))


def test_three_workers_refresh_a_third_each(hashing: Cluster, redis: Redis) -> None:
    workers = [hashing.worker(f"w{number}", CORE_INSTANCE_ID=str(number)) for number in range(3)]
    ids = many(90)
    succeed(ids)
    wait_for(ticked_until_true(ids), "every status to be true")
    assert set(Execution.objects.filter(pk__in=ids).values_list("revision", flat=True)) == {1}
    shares = [len([pk for pk in ids if pk % 3 == number]) for number in range(3)]
    wait_for(lambda: [refreshed_by(one) for one in workers] == [[share] for share in shares], "a third each")
    nothing_is_left(redis)


def test_the_share_of_a_killed_instance_waits_for_a_worker_with_its_number(hashing: Cluster) -> None:
    for number in range(2):
        hashing.worker(f"w{number}", CORE_INSTANCE_ID=str(number))
    hashing.worker("w2", CORE_INSTANCE_ID="2").kill()
    ids = many(30)
    succeed(ids)
    wait_for(ticked_until_true([pk for pk in ids if pk % 3 != 2]), "two thirds to be true")
    assert Execution.objects.filter(pk__in=ids, status="Running").count() == len([pk for pk in ids if pk % 3 == 2])
    hashing.worker("w2", CORE_INSTANCE_ID="2")
    wait_for(ticked_until_true(ids), "the last third to be true")


def test_workers_that_are_killed_and_restarted_leave_no_bindings_and_no_messages(
    hashing: Cluster, redis: Redis
) -> None:
    """A message of a dead worker would come back after the visibility timeout, to a list that no worker reads."""
    hashing.env["REFRESH_VISIBILITY_TIMEOUT_SECONDS"] = "1"
    before: set[bytes] = set()
    for turn in range(3):
        worker = hashing.worker(f"turn{turn}", concurrency=1, CORE_INSTANCE_ID="0")
        before = before or bindings(redis)
        wait_for(lambda worker=worker: hears_cycles(worker), "a cycle", log=worker.log)
        for _ in range(5):  # more than it can begin with before it dies
            broadcast()
        worker.kill()
    hashing.worker("last", CORE_INSTANCE_ID="0")
    time.sleep(4)  # a message could come back only after the timeout and the sweep of unacknowledged messages
    assert len(before) == 1
    assert bindings(redis) == before
    assert len(redis.keys("_kombu.binding*cycles")) <= 2
    nothing_is_left(redis)


def test_a_cycle_longer_than_the_visibility_timeout_runs_once_and_drops_ticks_meanwhile(
    cluster: Cluster, settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = "lock"
    cluster.env |= {"REFRESH_STRATEGY": "lock", "REFRESH_VISIBILITY_TIMEOUT_SECONDS": "1"}
    cluster.env["EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS"] = "600"  # so long a cycle waits for the lock
    worker = cluster.worker(concurrency=2)
    ids = many(3)
    succeed(ids)
    redis.set("cache:execution:refresh:lock", "of another process", ex=600)  # the cycle waits for it
    wait_for(lambda: redis.pubsub_numpat() == len(["remote control", "cycles"]), "the worker to listen")
    broadcast()
    wait_for(lambda: received(worker) == 1, "the cycle to be received", log=worker.log)
    time.sleep(2.5)  # the cycle could be sent again only after the timeout and the sweep
    broadcast()
    wait_for(lambda: "'dropped': 1" in worker.text(), "the tick to be dropped", log=worker.log)
    redis.delete("cache:execution:refresh:lock")
    wait_for(are_true(ids), "every status to be true")
    wait_for(lambda: "'succeeded': 3" in worker.text(), "the end of the cycle", log=worker.log)
    assert received(worker) == 2
    nothing_is_left(redis)


def test_a_worker_gets_cycles_again_after_redis_dropped_its_connections(hashing: Cluster, redis: Redis) -> None:
    worker = hashing.worker("w0", CORE_INSTANCE_ID="0", CORE_INSTANCE_TOTAL="1")
    wait_for(lambda: redis.client_kill_filter(_type="pubsub"), "a connection to drop")
    ids = many(3)
    succeed(ids)

    def done() -> bool:
        broadcast()
        return are_true(ids)()

    wait_for(done, "every status to be true", log=worker.log)
