"""The queue behind Sentinel: its clients find the primary, follow a failover, and keep to their time."""

import asyncio
import gc
import socket
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from celery import current_app
from flower.utils.broker import Broker

from benchmarks.errors import BenchError
from benchmarks.existing_servers import own_redis
from harbor_refresh.executions.errors import QueueRefused, QueueUnavailable
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.conf.pacing import REDIS_TIMEOUT_SECONDS
from harbor_refresh.tasks.queue.connection import PATIENCE, SENTINEL_SHARE, connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.elsewhere import uses
from tests.integration.checks.examined import CHECKS_OF_REDIS, sound_checks_of_redis
from tests.integration.concurrency import at_once
from tests.sentinel import NAME, BehindSentinel, behind_sentinel
from tests.waiting import slowness, wait_for

TIMEOUT = 5.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BehindSentinel]:
    with behind_sentinel(tmp_path_factory.mktemp("sentinel"), count=1) as made:
        yield made


def queue_of(url: str) -> ExecutionQueue:
    return ExecutionQueue(refresh_settings(), connect(url, TIMEOUT, tries=4), connect(url, TIMEOUT, tries=1))


def with_a_sentinel_first(url: str, port: int) -> str:
    return url.replace("redis+sentinel://", f"redis+sentinel://{LOOPBACK}:{port},")


def test_a_sentinel_that_is_down_is_passed_over_and_asked_last_from_then_on(made: BehindSentinel) -> None:
    client = connect(with_a_sentinel_first(made.url, choose_port()), TIMEOUT, tries=1)
    assert client.ping()
    sentinels = client.connection_pool.sentinel_manager  # type: ignore[attr-defined]
    assert sentinels.places[0].port == made.sentinels[0].port


def test_threads_that_ask_the_sentinels_at_once_do_not_disturb_each_other(made: BehindSentinel) -> None:
    sentinels = connect(made.url, TIMEOUT, tries=1).connection_pool.sentinel_manager  # type: ignore[attr-defined]

    def ask_often() -> None:
        for _ in range(20):
            assert sentinels.discover_master(NAME)

    at_once(*[ask_often] * 8)


def test_sentinels_that_all_hang_cost_a_bounded_time() -> None:
    timeout = 1.0 * slowness()
    with socket.create_server(("", 0)) as silent:
        places = ",".join(f"127.0.0.{number}:{silent.getsockname()[1]}" for number in range(1, 9))
        began = monotonic()
        with pytest.raises(QueueUnavailable):
            connect(f"redis+sentinel://{places}/{NAME}/0", timeout, tries=4).ping()
        # the page of troubleshooting says 5 s
        assert monotonic() - began < 5 / REDIS_TIMEOUT_SECONDS * timeout


def test_a_sentinel_that_hangs_costs_its_share_of_the_time_and_no_more(made: BehindSentinel) -> None:
    timeout = 2.0 * slowness()
    with socket.create_server((LOOPBACK, 0)) as silent:  # the kernel takes the connection, and no program answers
        client = connect(with_a_sentinel_first(made.url, silent.getsockname()[1]), timeout, tries=1)
        began = monotonic()
        assert client.ping()
        assert SENTINEL_SHARE * timeout < monotonic() - began < PATIENCE * timeout


def test_an_unknown_name_and_a_wrong_password_are_told(made: BehindSentinel) -> None:
    unknown = queue_of(made.url.replace("/main/", "/other/"))
    with pytest.raises(QueueUnavailable, match="No master found for 'other'"):
        unknown.mark(["1:A"])
    refused = queue_of(f"{made.url}?sentinel_username=unknown&sentinel_password=wrong")
    with pytest.raises(QueueRefused):
        refused.mark(["1:A"])


async def counted(broker: Any, queue: str) -> Any:
    """What Flower counts. It leaves the connections open."""
    pool = broker.redis.connection_pool
    try:
        return await broker.queues([queue])
    finally:
        await pool.disconnect()
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


def test_whatever_else_uses_redis_works_behind_sentinel(made: BehindSentinel) -> None:
    with uses(made.url, made.url):
        assert sound_checks_of_redis() == CHECKS_OF_REDIS
        assert channels.is_the_same_server()
        assert channels.messages(["a queue"]) == {"a queue": 0}
        conf = current_app.conf
        with current_app.pool.acquire(block=True) as connection:
            connection.default_channel.client.lpush("a queue", "one")  # type: ignore[attr-defined]
            asked = Broker(  # as Flower's page of the broker does
                connection.as_uri(include_password=True), broker_options=conf.broker_transport_options
            )
        assert asyncio.run(counted(asked, "a queue")) == [{"name": "a queue", "messages": 1}]
        gc.collect()  # a connection that was left open fails this test and no other
        assert channels.messages(["a queue"]) == {"a queue": 1}


def test_a_refusal_of_the_bench_names_the_reason(made: BehindSentinel) -> None:
    with (
        pytest.raises(BenchError, match=r"behind Sentinel\. The bench measures one server"),
        own_redis(made.url, 15),
    ):
        pass


def test_both_clients_follow_a_failover(made: BehindSentinel) -> None:
    queue = queue_of(made.url)
    queue.mark(["1:A"])
    assert queue.claim("me", 1).claim.members == ("1:A",)
    with connect(made.url, TIMEOUT, tries=1) as operator:
        wait_for(lambda: operator.wait(1, 1_000) == 1, "the replica to have it")
    killed = made.kill_primary()
    queue.mark(["2:A"])
    assert not queue.lost(["2:A"])
    assert queue.claim("me", 1).claim.members == ("2:A",)
    assert {token.member for token in queue.tokens()} == {"1:A", "2:A"}
    killed.start()
