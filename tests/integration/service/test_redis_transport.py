"""The mended transport of kombu: a Redis that refuses writes is down."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Consumer, Queue
from kombu.exceptions import OperationalError

from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.broker import redis_transport
from harbor_refresh.tasks.queue.connection import NotServing, WrongServer
from tests.integration.concurrency import DEADLINE_SECONDS, wait_until
from tests.integration.redis_state import Redis
from tests.proxy import Proxy

QUEUE = "a queue"


class Reader:
    """Reads the queue as a worker does: one connection after the other, with acknowledgement."""

    def __init__(self, url: str) -> None:
        self.connection = Connection(url, transport=redis_transport.Transport)
        self.bodies: list[Any] = []

    def begin(self) -> None:
        self.connection.ensure_connection(max_retries=0)
        consumer = Consumer(self.connection.default_channel, [Queue(QUEUE)], callbacks=[self._take])
        consumer.consume()

    def _take(self, body: Any, message: Any) -> None:
        self.bodies.append(body)
        message.ack()

    def read(self, messages: int) -> None:
        """Until it has so many in all."""
        while len(self.bodies) < messages:
            self.connection.drain_events(timeout=DEADLINE_SECONDS)

    def close(self) -> None:
        self.connection.collect()


@pytest.fixture
def reader(server: EmbeddedRedis) -> Iterator[Reader]:
    reader = Reader(server.url)
    yield reader
    reader.close()


def send(url: str, *bodies: str) -> None:
    with Connection(url) as connection, connection.SimpleQueue(QUEUE) as queue:
        for body in bodies:
            queue.put(body)


def test_a_full_redis_is_down_until_it_takes_writes_again(
    server: EmbeddedRedis, operator: Redis, reader: Reader
) -> None:
    reader.begin()
    send(server.url, "one", "two")
    operator.config_set("maxmemory", "1mb")
    with pytest.raises(NotServing, match="OOM command not allowed"):
        reader.read(1)
    reader.close()
    with pytest.raises(OperationalError, match=r"^OOM "):
        reader.begin()
    assert operator.llen(QUEUE) == 1, "without a connection it takes no others"
    operator.config_set("maxmemory", "0")
    reader.begin()
    reader.read(1)


def test_messages_that_cannot_be_put_back_when_the_connection_closes_come_back_later(
    server: EmbeddedRedis, operator: Redis, reader: Reader
) -> None:
    reader._take = lambda body, message: reader.bodies.append(body)  # type: ignore[method-assign]
    reader.begin()
    send(server.url, "one")
    reader.read(1)
    assert operator.hlen("unacked") == 1
    operator.config_set("maxmemory", "1mb")
    reader.close()
    assert (operator.hlen("unacked"), operator.llen(QUEUE)) == (1, 0)


@pytest.mark.parametrize("settle", ["ack", "reject", "requeue"])
def test_a_message_whose_acknowledgement_is_refused_does_not_block_other_messages(
    server: EmbeddedRedis, operator: Redis, reader: Reader, settle: str
) -> None:
    def take(body: Any, message: Any) -> None:
        reader.bodies.append(body)
        operator.config_set("min-replicas-to-write", 1)
        with pytest.raises(NotServing, match="NOREPLICAS"):
            getattr(message, settle)()
        operator.config_set("min-replicas-to-write", 0)

    reader._take = take  # type: ignore[method-assign]
    reader.begin()
    reader.connection.default_channel.basic_qos(0, 1, False)
    send(server.url, "one", "two")
    reader.read(2)
    assert reader.bodies == ["one", "two"]
    assert operator.hlen("unacked") == 2, "they come again after the visibility timeout"


def test_no_connection_is_made_to_a_server_that_takes_no_writes_and_the_check_leaves_no_key(
    server: EmbeddedRedis, operator: Redis, reader: Reader
) -> None:
    operator.config_set("min-replicas-to-write", 1)
    for _ in range(3):
        with pytest.raises(OperationalError, match=r"^NOREPLICAS "):
            reader.connection.ensure_connection(max_retries=0)
    wait_until(lambda: len(operator.client_list()) == 1, "the connections to be closed")
    operator.config_set("min-replicas-to-write", 0)
    reader.connection.ensure_connection(max_retries=0)
    assert operator.keys("*") == []


@pytest.mark.slow
def test_a_publisher_whose_server_was_demoted_fails_once(
    server: EmbeddedRedis, operator: Redis, tmp_path: Path
) -> None:
    with EmbeddedRedis(tmp_path / "standby") as standby, Redis.from_url(standby.url) as other:
        other.replicaof("127.0.0.1", server.port)
        wait_until(lambda: other.info("replication")["master_link_status"] == "up", "the replica")
        proxy = Proxy(server.port)
        address = f"redis://127.0.0.1:{proxy.port}/0"
        with Connection(address, transport=redis_transport.Transport) as connection:
            producer = connection.Producer()
            producer.publish("one", routing_key=QUEUE)
            wait_until(lambda: other.llen(QUEUE) == 1, "the message at the replica")
            other.replicaof("NO", "ONE")
            proxy.target = standby.port
            operator.replicaof("127.0.0.1", standby.port)
            wait_until(lambda: operator.role()[0] == b"slave", "the demotion")
            with pytest.raises(WrongServer, match=r"^READONLY "):
                producer.publish("two", routing_key=QUEUE)
            producer.publish("three", routing_key=QUEUE)
        assert other.llen(QUEUE) == 2
        proxy.close()
