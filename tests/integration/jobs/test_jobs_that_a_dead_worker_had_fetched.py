"""Jobs that a dead worker had fetched from a Redis and not begun: which messages go back into their queues, and
which are lost and sent again."""

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from kombu import Connection
from redis.exceptions import ConnectionError, NoPermissionError

from harbor_refresh.celery import app
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.broker import unacknowledged
from harbor_refresh.tasks.broker.unacknowledged import note_again
from harbor_refresh.tasks.celery_queues import JOBS
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.records.pages import readable
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.repair import lost_messages, reaper
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.jobs.repair.unbegun import put_unbegun_back
from harbor_refresh.tasks.queue.sets import PAGE
from tests import servers
from tests.integration.jobs.sample_jobs import record, write
from tests.integration.redis_state import PREFIX, Redis

pytestmark = pytest.mark.usefixtures("database")

#: Its last heartbeat came a minute ago. After ten seconds of silence it counted as dead.
DIED = -60.0
#: Its last heartbeat came so late that what the test sends may be lost with it.
JUST_NOW = -1.0


def queued(*jobs: str, **options: Any) -> None:
    start("SCAN", [[NewJob("a.job", job_id=job, options=options)] for job in jobs])


def fetch(redis: Redis, at: float = DIED - 1, now: float | None = None) -> None:
    """As kombu does, for all that waits: the messages are those of a worker that fetched them so many seconds from
    now."""
    now = time.time() if now is None else now
    for queue in lists(redis):
        while raw := redis.rpop(queue):
            message = json.loads(raw)
            place = message["properties"]["delivery_info"]
            tag = message["properties"]["delivery_tag"]
            redis.hset("unacked", tag, json.dumps([message, place["exchange"], place["routing_key"]]))
            redis.zadd("unacked_index", {tag: now + at})


def lists(redis: Redis) -> list[bytes]:
    return sorted(key for key in redis.keys("*") if redis.type(key) == b"list")


def died(redis: Redis, at: float = DIED) -> None:
    redis.zadd(f"{PREFIX}dead", {"gone": round((time.time() + at) * 1_000_000)})


def where(redis: Redis) -> dict[str, list[str]]:
    """The ids of messages by the list they are in, and of those that are fetched."""
    found = {key.decode(): [json.loads(raw) for raw in redis.lrange(key, 0, -1)] for key in lists(redis)}
    found["fetched"] = [json.loads(raw)[0] for raw in redis.hvals("unacked")]
    assert redis.zcard("unacked_index") == len(found["fetched"])
    return {key: sorted(one["headers"]["id"] for one in messages) for key, messages in found.items() if messages}


def test_what_a_dead_worker_had_fetched_goes_back_once(redis: Redis) -> None:
    queued("a", "b")
    queued("c", queue="slow", priority=6)
    before = where(redis)
    assert sorted(before.values()) == [["a", "b"], ["c"]]
    fetch(redis)
    died(redis)
    assert where(redis) == {"fetched": ["a", "b", "c"]}
    assert put_unbegun_back() == 3
    assert where(redis) == before
    fetch(redis, at=-1)
    assert put_unbegun_back() == 0
    assert where(redis) == {"fetched": ["a", "b", "c"]}


def test_a_process_looks_once_after_each_death(redis: Redis) -> None:
    queued("a")
    before = where(redis)
    died(redis)
    assert put_unbegun_back() == 0
    fetch(redis)  # too late for that look
    assert put_unbegun_back() == 0
    died(redis, at=DIED + 1)
    assert put_unbegun_back() == 1
    assert where(redis) == before


def test_a_look_that_was_cut_off_is_made_again(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    queued("a", "b")
    before = where(redis)
    fetch(redis)
    died(redis)
    with monkeypatch.context() as patch:
        patch.setattr(Redis, "hmget", Mock(side_effect=ConnectionError("gone")))
        with pytest.raises(QueueUnavailable):
            put_unbegun_back()
    assert where(redis) == {"fetched": ["a", "b"]}
    assert put_unbegun_back() == 2
    assert where(redis) == before


def test_however_many_messages_stay_those_behind_them_go_back(redis: Redis) -> None:
    queued("a")
    fetch(redis, at=DIED - 100)
    queued("later", countdown=600)
    [raw] = redis.lrange(JOBS, 0, -1)
    redis.delete(JOBS)
    fetched = time.time() + DIED - 1
    redis.hset("unacked", mapping={f"tag{n}": json.dumps([json.loads(raw), "", JOBS]) for n in range(PAGE)})
    redis.zadd("unacked_index", {f"tag{n}": fetched for n in range(PAGE)})
    died(redis)
    assert put_unbegun_back() == 1
    assert [json.loads(one)["headers"]["id"] for one in redis.lrange(JOBS, 0, -1)] == ["a"]
    assert redis.hlen("unacked") == PAGE


@pytest.mark.parametrize(
    ("fetched", "deaths", "goes_back"),
    [
        (DIED - 3600, [DIED], True),
        (DIED + 9, [DIED], True),  # it was silent already, and did not count as dead
        (DIED + 11, [DIED], False),
        (DIED - 1, [], False),
        (DIED - 1, [DIED - 30], False),
        (DIED - 1, [DIED - 30, DIED], True),
        (DIED - 1, [DIED - 30, 3600], False),  # the clock of Redis went back
    ],
)
def test_only_what_was_fetched_before_a_process_counted_as_dead_goes_back(
    fetched: float, deaths: Sequence[float], goes_back: bool, redis: Redis
) -> None:
    assert pacing.NODE_TTL_SECONDS == 10
    queued("a")
    before = where(redis)
    now = time.time()
    fetch(redis, at=fetched, now=now)
    for number, death in enumerate(deaths):
        redis.zadd(f"{PREFIX}dead", {f"gone{number}": round((now + death) * 1_000_000)})
    assert put_unbegun_back() == goes_back
    assert where(redis) == (before if goes_back else {"fetched": ["a"]})


@pytest.mark.parametrize(
    ("known", "goes_back"),
    [
        ({"node": "live", "status": "Running"}, False),
        ({"status": "Pending", "revision": 1}, True),
        ({"status": "Success"}, True),  # the worker died before it acknowledged it, and another drops it
    ],
    ids=["it runs", "it waits for another try", "it has ended"],
)
def test_a_job_that_runs_stays_where_it_is(known: dict[str, Any], goes_back: bool, redis: Redis) -> None:
    queued("j")
    before = where(redis)
    fetch(redis)
    died(redis)
    write(redis, replace(record("j", **known), checked_in=0))
    assert put_unbegun_back() == goes_back
    assert where(redis) == (before if goes_back else {"fetched": ["j"]})


def test_a_job_for_later_and_what_is_no_job_stay_where_they_are(redis: Redis) -> None:
    queued("later", countdown=600)
    app.send_task("a.task", task_id="of-another")
    fetch(redis)
    died(redis)
    redis.hset("unacked", "rubbish", "{")
    redis.zadd("unacked_index", {"rubbish": 1, "without a message": 2})
    before = redis.hgetall("unacked"), redis.zrange("unacked_index", 0, -1, withscores=True)
    assert put_unbegun_back() == 0
    assert (redis.hgetall("unacked"), redis.zrange("unacked_index", 0, -1, withscores=True)) == before
    assert lists(redis) == []


def test_messages_whose_note_redis_has_lost_come_back_after_the_visibility_timeout(redis: Redis) -> None:
    """Kombu finds what is due by the notes alone. One message still has its note, and a note is of no message."""
    queued("a", "b", "c")
    before = where(redis)
    fetch(redis, at=-10)
    tags = redis.zrange("unacked_index", 0, -1)
    kept = redis.zscore("unacked_index", tags[0])
    redis.delete("unacked_index")
    redis.zadd("unacked_index", {tags[0]: kept})

    since = time.time()
    assert note_again() == 2
    notes = dict(redis.zrange("unacked_index", 0, -1, withscores=True))
    assert notes.pop(tags[0]) == kept
    assert notes.keys() == set(tags[1:])
    assert all(since <= moment <= time.time() for moment in notes.values())
    assert note_again() == 0
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        channel.visibility_timeout = 0
        channel.qos.restore_visible()
    assert where(redis) == before


def test_a_message_that_is_acknowledged_while_it_is_noted_again_leaves_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued("a")
    fetch(redis)
    redis.delete("unacked_index")
    scan = Redis.hscan

    def scanned_and_acknowledged(client: Redis, *args: Any, **options: Any) -> Any:
        found = scan(client, *args, **options)
        redis.delete("unacked")
        return found

    monkeypatch.setattr(Redis, "hscan", scanned_and_acknowledged)
    assert note_again() == 1
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        channel.visibility_timeout = 0
        channel.qos.restore_visible()
    assert not redis.exists("unacked", "unacked_index")


def test_a_broker_that_refuses_the_question_ends_no_recovery(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued("a")
    fetch(redis)
    redis.delete("unacked_index")
    for command in ("hlen", "zadd"):
        with monkeypatch.context() as patch:
            patch.setattr(Redis, command, Mock(side_effect=NoPermissionError("no permissions")))
            assert note_again() == 0
    assert note_again() == 1


def test_the_messages_of_an_app_with_a_prefix_are_compared_with_its_own_notes(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another app on this Redis has messages and notes of its own."""
    redis.hset("unacked", "theirs", "x")
    redis.zadd("unacked_index", {"theirs": 1, "acknowledged": 1})
    redis.hset("ours:unacked", "a", "x")
    redis.zadd("ours:unacked_index", {"a": 1})
    options = dict(app.conf.broker_transport_options) | {"global_keyprefix": "ours:"}
    prefixed = Connection(app.conf.broker_url, transport_options=options)
    with prefixed as connection:
        monkeypatch.setattr(
            unacknowledged, "pooled_channel", lambda: nullcontext(("redis", connection.default_channel))
        )
        assert note_again() == 0
        redis.delete("ours:unacked_index")
        assert note_again() == 1
    assert redis.zrange("ours:unacked_index", 0, -1) == [b"a"]
    assert redis.zrange("unacked_index", 0, -1) == [b"acknowledged", b"theirs"]


def minutes_later() -> None:
    """Recovery publishes no job that was recorded a moment ago, because its producer is still at it."""
    Task.objects.update(creation_time=timezone.now() - timedelta(minutes=1))


def lose(redis: Redis, job: str) -> None:
    """As a worker does that is killed before it can note that it has taken the message."""
    for queue in lists(redis):
        for raw in redis.lrange(queue, 0, -1):
            if json.loads(raw)["headers"]["id"] == job:
                redis.lrem(queue, 1, raw)


def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_messages, "FIRST_PAUSE", 0.0)


def test_a_message_that_was_lost_with_its_worker_is_sent_again_as_soon_as_its_queue_is_empty(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of a queue that holds messages waits, because its own may be among them."""
    no_pause(monkeypatch)
    queued("lost", "still there")
    queued("of another queue", "lost there", queue="slow")
    lose(redis, "lost")
    lose(redis, "lost there")
    died(redis, at=JUST_NOW)
    recover_stale()
    recover_stale()
    assert where(redis) == {JOBS: ["still there"], "slow": ["of another queue"]}
    lose(redis, "of another queue")
    minutes_later()
    recover_stale()  # finds that it is lost
    recover_stale()  # sends it again
    assert where(redis) == {JOBS: ["still there"], "slow": ["lost there", "of another queue"]}
    lose(redis, "still there")
    recover_stale()
    recover_stale()
    assert where(redis) == {JOBS: ["lost", "still there"], "slow": ["lost there", "of another queue"]}


def test_without_a_death_a_job_has_the_patience_of_the_reaper(redis: Redis) -> None:
    queued("fetched by a live worker a moment ago")
    lose(redis, "fetched by a live worker a moment ago")
    minutes_later()
    recover_stale()
    recover_stale()
    assert where(redis) == {}


def test_a_message_sent_after_a_worker_counted_as_dead_was_not_lost_with_it(redis: Redis) -> None:
    died(redis, at=DIED)
    queued("fetched by a live worker a moment ago")
    lose(redis, "fetched by a live worker a moment ago")
    minutes_later()
    recover_stale()
    recover_stale()
    assert where(redis) == {}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The passes of the search, counted."""
    counted = Mock(side_effect=reap)
    monkeypatch.setattr(lost_messages, "reap", counted)
    return counted


def test_a_search_that_could_tell_of_every_job_is_over_until_the_next_death(
    redis: Redis, passes: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_pause(monkeypatch)
    queued("waits")
    died(redis, at=DIED + 1)
    for _ in range(2):
        recover_stale()
        assert passes.call_count == 1, "nothing was sent so long ago, so nothing waits that may be lost"
    died(redis, at=JUST_NOW)
    for count in (2, 3):
        recover_stale()
        assert passes.call_count == count, "its queue is not empty"
    lose(redis, "waits")
    minutes_later()
    for _ in range(3):
        recover_stale()
    assert passes.call_count == 4
    assert where(redis) == {JOBS: ["waits"]}


def test_while_a_backlog_waits_the_passes_grow_rare_for_all_processes_together(redis: Redis, passes: Mock) -> None:
    """What a process knows is in Redis, so that a call may be any process's. A further death changes nothing."""
    key = f"{PREFIX}search"
    queued("waits")
    died(redis, at=JUST_NOW)
    pauses = []
    for count in range(1, 10):
        recover_stale()
        due, now = int(redis.hget(key, "due")), job_records().memory().now
        pauses.append(round((due - now) / 5_000_000) * 5)
        redis.zadd(f"{PREFIX}dead", {f"gone {count}": now - 1_000_000})
        for _ in range(3):
            recover_stale()
        assert passes.call_count == count
        redis.hset(key, "due", 1)  # the pause is over
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 320, 320]


def test_only_messages_that_were_sent_before_the_death_prolong_a_search(
    redis: Redis, passes: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reaper has lost its patience with them, but nothing says that they were lost with that worker."""
    no_pause(monkeypatch)
    monkeypatch.setattr(reaper, "_patience", lambda: 0)
    died(redis)
    queued("waits")
    for _ in range(3):
        recover_stale()
    assert passes.call_count == 1
    died(redis, at=JUST_NOW)
    for _ in range(3):
        recover_stale()
    assert passes.call_count == 4


def test_no_pass_is_done_for_a_death_of_more_than_an_hour_ago(redis: Redis, passes: Mock) -> None:
    """A worker that starts, and a Redis that has forgotten the search, know of deaths of long ago."""
    queued("waits")
    died(redis, at=-3700.0)
    recover_stale()
    assert passes.call_count == 0
    died(redis, at=-3500.0)
    recover_stale()
    assert passes.call_count == 1


def test_a_pass_that_meets_a_locked_table_ends_no_recovery_and_comes_again_after_the_pause(
    redis: Redis, passes: Mock, database: str
) -> None:
    queued("lost")
    lose(redis, "lost")
    died(redis, at=JUST_NOW)
    minutes_later()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("LOCK TABLE execution_job IN ACCESS EXCLUSIVE MODE")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
        recover_stale()
        recover_stale()
        assert passes.call_count == 1
    redis.hset(f"{PREFIX}search", "due", 1)
    recover_stale()
    recover_stale()
    assert where(redis) == {JOBS: ["lost"]}


def test_a_job_that_waits_for_another_run_is_found_as_well(redis: Redis) -> None:
    """Redis has a record of it, which says that its message was sent."""
    queued("again")
    lose(redis, "again")
    waits = record("again", Status.SCHEDULED, 1, acknowledged=(1, Status.SCHEDULED))
    write(redis, replace(waits, checked_in=job_records().memory().now))
    died(redis, at=JUST_NOW)
    recover_stale()
    assert [one.sent for page in job_records().all() for one in readable(page)[0]] == [False]
