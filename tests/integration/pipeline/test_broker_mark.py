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


class Jobs:
    """Counts how often the jobs were to be looked up."""

    def __init__(self) -> None:
        self.count = 0

    def look_up(self) -> None:
        self.count += 1


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


def now() -> int:
    return execution_queue().stats().now


def test_the_first_look_marks_the_broker_and_takes_nothing_for_lost(
    redis: Redis, broker: Redis, jobs: Jobs
) -> None:
    began = now()
    assert _lost_before(broker, jobs.look_up) == 0
    noted = int(redis.get(NOTE) or 0)
    assert began <= noted <= now()
    assert broker.get(MARK) == f"{broker.info('server')['run_id']} {noted}".encode()
    assert [_lost_before(broker, jobs.look_up) for _ in range(2)] == [noted, noted]
    assert jobs.count == 0


def test_a_broker_that_was_emptied_has_lost_all_and_the_jobs_are_looked_up(
    redis: Redis, broker: Redis, jobs: Jobs
) -> None:
    _lost_before(broker, jobs.look_up)
    broker.flushdb()
    began = now()
    assert began <= (lost := _lost_before(broker, jobs.look_up)) <= now()
    assert (jobs.count, _lost_before(broker, jobs.look_up), jobs.count) == (1, lost, 1)


def test_another_server_has_lost_claims_and_no_jobs_are_looked_up(redis: Redis, broker: Redis, jobs: Jobs) -> None:
    _lost_before(broker, jobs.look_up)
    broker.set(MARK, b"another " + (redis.get(NOTE) or b""))
    began = now()
    assert began <= (lost := _lost_before(broker, jobs.look_up)) <= now()
    assert (_lost_before(broker, jobs.look_up), jobs.count) == (lost, 0)


@pytest.mark.parametrize("rubbish", [b"", b"x", b"-1", b"1.5"])
def test_rubbish_in_the_note_is_no_note(rubbish: bytes, redis: Redis, broker: Redis, jobs: Jobs) -> None:
    redis.set(NOTE, rubbish)
    assert _lost_before(broker, jobs.look_up) == 0
    assert (_lost_before(broker, jobs.look_up) > 0, jobs.count) == (True, 0)


def test_rubbish_in_the_mark_is_no_mark(redis: Redis, broker: Redis, jobs: Jobs) -> None:
    _lost_before(broker, jobs.look_up)
    broker.delete(MARK)
    broker.rpush(MARK, "rubbish")
    assert _lost_before(broker, jobs.look_up) == int(redis.get(NOTE) or 0) > 0
    assert (broker.type(MARK), jobs.count) == (b"string", 1)


def test_a_process_that_dies_before_the_note_leaves_that_to_the_next(
    redis: Redis, broker: Redis, jobs: Jobs
) -> None:
    noted = _lost_before(broker, jobs.look_up) or int(redis.get(NOTE) or 0)
    broker.flushdb()
    _lost_before(broker, jobs.look_up)
    redis.set(NOTE, noted)
    assert _lost_before(broker, jobs.look_up) > noted
    assert jobs.count == 1, "the jobs were looked up before"


def test_a_user_that_may_not_mark_the_broker_has_lost_nothing(redis: Redis, broker: Redis, jobs: Jobs) -> None:
    broker.acl_setuser(
        "reads", enabled=True, nopass=True, keys=["*"], commands=["+get", "+type", "+info", "+select"]
    )
    with Redis.from_url(servers.redis.url_for(5), username="reads", password="any") as reader:
        for _ in range(2):
            with pytest.raises(NoPermissionError):
                _lost_before(reader, jobs.look_up)
    broker.acl_deluser("reads")
    assert (redis.get(NOTE), jobs.count) == (None, 0)
