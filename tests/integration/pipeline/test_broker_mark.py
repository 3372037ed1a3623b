"""The mark in the broker: when messages count as lost, and that each step may be repeated."""

from collections.abc import Iterator

import pytest
from redis.exceptions import NoPermissionError

from harbor_refresh.tasks.broker.mark import MARK, _lost_before
from harbor_refresh.tasks.queue import execution_queue
from tests import servers
from tests.integration.redis_state import PREFIX, Redis

NOTE = f"{PREFIX}broker"


@pytest.fixture
def broker(redis: Redis) -> Iterator[Redis]:
    """Another database, as another server would be."""
    with Redis.from_url(servers.redis.url_for(5)) as client:
        client.flushdb()
        yield client


def now() -> int:
    return execution_queue().stats().now


def test_the_first_look_marks_the_broker_and_takes_nothing_for_lost(redis: Redis, broker: Redis) -> None:
    began = now()
    assert _lost_before(broker) == 0
    noted = int(redis.get(NOTE) or 0)
    assert began <= noted <= now()
    assert broker.get(MARK) == f"{broker.info('server')['run_id']} {noted}".encode()
    assert [_lost_before(broker) for _ in range(2)] == [noted, noted]


def test_a_broker_that_was_emptied_has_lost_all(redis: Redis, broker: Redis) -> None:
    _lost_before(broker)
    broker.flushdb()
    began = now()
    assert began <= (lost := _lost_before(broker)) <= now()
    assert _lost_before(broker) == lost


def test_another_server_has_lost_all_too(redis: Redis, broker: Redis) -> None:
    _lost_before(broker)
    broker.set(MARK, b"another " + (redis.get(NOTE) or b""))
    began = now()
    assert began <= (lost := _lost_before(broker)) <= now()
    assert _lost_before(broker) == lost


@pytest.mark.parametrize("rubbish", [b"", b"x", b"-1", b"1.5"])
def test_rubbish_in_the_note_is_no_note(rubbish: bytes, redis: Redis, broker: Redis) -> None:
    redis.set(NOTE, rubbish)
    assert _lost_before(broker) == 0
    assert _lost_before(broker) > 0


def test_rubbish_in_the_mark_is_no_mark(redis: Redis, broker: Redis) -> None:
    _lost_before(broker)
    broker.delete(MARK)
    broker.rpush(MARK, "rubbish")
    assert _lost_before(broker) == int(redis.get(NOTE) or 0) > 0
    assert broker.type(MARK) == b"string"


def test_a_process_that_dies_before_the_note_leaves_that_to_the_next(redis: Redis, broker: Redis) -> None:
    noted = _lost_before(broker) or int(redis.get(NOTE) or 0)
    broker.flushdb()
    _lost_before(broker)
    redis.set(NOTE, noted)
    assert _lost_before(broker) > noted


def test_a_user_that_may_not_mark_the_broker_has_lost_nothing(redis: Redis, broker: Redis) -> None:
    broker.acl_setuser(
        "reads", enabled=True, nopass=True, keys=["*"], commands=["+get", "+type", "+info", "+select"]
    )
    with Redis.from_url(servers.redis.url_for(5), username="reads", password="any") as reader:
        for _ in range(2):
            with pytest.raises(NoPermissionError):
                _lost_before(reader)
    broker.acl_deluser("reads")
    assert redis.get(NOTE) is None
