"""The queue on a Cluster of three: all keys on one primary, and clients that follow their slot."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from redis import Redis

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.startup import given_redis
from harbor_refresh.redis_cache import RedisCache
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.overview import of_broker
from harbor_refresh.tasks.queue import brief_queue
from harbor_refresh.tasks.queue.connection import connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from harbor_refresh.tasks.queue.replies import Released
from harbor_refresh.tasks.queue.stale_claims import release_stale
from tests import servers
from tests.elsewhere import uses
from tests.integration.checks.examined import CHECKS_OF_REDIS, sound_checks_of_redis
from tests.redis_cluster import PREFIX, SLOT, RedisCluster, redis_cluster
from tests.waiting import wait_for

TIMEOUT = 5.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(autouse=True)
def tag(settings: object) -> None:
    settings.REFRESH_KEY_PREFIX = PREFIX  # type: ignore[attr-defined]


@pytest.fixture
def client(made: RedisCluster) -> Iterator[Redis]:
    """The patient client, with an empty Cluster."""
    with connect(made.url, TIMEOUT, tries=4) as client:
        client.flushall()
        yield client


@pytest.fixture
def queue(made: RedisCluster, client: Redis) -> ExecutionQueue:
    return ExecutionQueue(conf(), client, connect(made.url, TIMEOUT, tries=1))


def conf() -> Refresh:
    return replace(refresh_settings(), key_prefix=PREFIX)


def members(queue: ExecutionQueue) -> tuple[str, ...]:
    return queue.claim("me", 10).claim.members


def test_each_verb_works_and_all_keys_are_in_one_slot(made: RedisCluster, queue: ExecutionQueue) -> None:
    queue.mark(f"{number}:A" for number in range(1, 41))
    queue.heartbeat("me")
    claim = queue.claim("me", 30).claim
    taken = queue.take_over(claim, "other")
    assert queue.complete(taken.only(taken.members[:10])).count == 10
    assert queue.fail(taken.only(taken.members[10:20])).returned == 10
    rest = taken.only(taken.members[20:])
    assert queue.release(rest).returned == len(rest) > 0
    assert release_stale(queue) == (Released(), ())
    assert queue.lost([*taken.members[10:], "100:A"]) == ["100:A"]
    queue.leave("me")
    queue.tick_ran()
    queue.pause()
    assert (queue.stats().backlog, queue.stats().backlog) == (30, 30)
    assert queue.must_send_tick() is False, "it is paused"
    owner = made.owner()
    assert owner.run("DBSIZE") == owner.run("CLUSTER", "COUNTKEYSINSLOT", SLOT) > 5


def test_whatever_else_uses_redis_works_on_a_cluster(made: RedisCluster, client: Redis) -> None:
    with uses(made.url, servers.redis.url, prefix=PREFIX):
        assert sound_checks_of_redis() == CHECKS_OF_REDIS
        assert not of_broker.is_the_same_server()
        assert (of_broker.messages(["a queue"]), brief_queue().stats().backlog) == ({"a queue": 0}, 0)
    cache = RedisCache(made.url, {"KEY_PREFIX": f"{PREFIX}api"})
    assert (cache.add("a", 1), cache.incr("a")) == (True, 2)


def test_make_up_refuses_a_cluster(made: RedisCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", made.url)
    with pytest.raises(LocalError, match="REDIS_URL is a Cluster"):
        given_redis()


def test_one_node_of_the_address_is_enough(made: RedisCluster, queue: ExecutionQueue) -> None:
    for node in made.nodes:
        with connect(f"redis+cluster://{LOOPBACK}:{node.port}", TIMEOUT, tries=1) as client:
            assert client.set(queue.keys.pause, 1)


def test_while_the_slot_moves_the_queue_is_away_and_then_both_clients_follow_it(
    made: RedisCluster, queue: ExecutionQueue
) -> None:
    assert members(queue) == (), "both clients are connected"
    queue.mark(["1:A", "2:A"])
    source = made.owner()
    target = next(node for node in made.nodes[:3] if node is not source)
    move = made.move_slot(target)
    next(move)
    with pytest.raises(QueueUnavailable, match=r"WrongServer: (TRYAGAIN|ASK) "):
        queue.mark(["3:A"])
    with suppress(StopIteration):
        next(move)
    with pytest.raises(QueueUnavailable, match="WrongServer: MOVED "):
        queue.claim("me", 1)
    assert set(members(queue)) == {"1:A", "2:A"}
    assert queue.mark(["3:A"]).added == 1
    assert made.owner() is target
    for _ in made.move_slot(source):
        pass


@pytest.mark.slow
def test_a_replica_takes_over_and_the_queue_goes_on(made: RedisCluster, queue: ExecutionQueue) -> None:
    queue.mark(["1:A"])
    wait_for(lambda: queue._redis.wait(1, 1_000) == 1, "the replica to have it")
    killed = made.kill_owner()
    assert members(queue) == ("1:A",)
    killed.start()
    wait_for(made.is_whole, "the Cluster to be whole")


@pytest.mark.slow
def test_a_cluster_without_a_majority_is_away(made: RedisCluster, queue: ExecutionQueue) -> None:
    owner = made.owner()
    others = [node for node in made.nodes if node is not owner]
    for node in others:
        node.kill()
    wait_for(lambda: owner.says()["cluster_state"] == "fail", "the Cluster to be down")
    with pytest.raises(QueueUnavailable, match=r"CLUSTERDOWN|no node of the Cluster"):
        queue.mark(["1:A"])
    for node in others:
        node.start()
    wait_for(made.is_whole, "the Cluster to be whole")
    assert queue.mark(["1:A"]).added == 1
