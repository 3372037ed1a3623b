"""Harbor's own marks: taken in by ticks, and exported."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.news.audit import Word, at_terminal
from harbor_refresh.tasks.celery_tasks import claim_batch
from harbor_refresh.tasks.operations.pauses import pause, resume
from harbor_refresh.tasks.pipeline import legacy_marks
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.legacy_marks import export_marks
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.connection import connect
from tests import servers
from tests.integration.command_output import data, failing
from tests.integration.concurrency import in_background
from tests.integration.pipeline.pipeline_state import marked, names
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "redis")

KEY = "cache:execution:id:{}:vendor:{}:status_outdate"
SET = "execution:status_outdate"
REST = "cache:execution:refresh:legacy_rest"


@pytest.fixture(autouse=True)
def as_a_new_process() -> Iterator[None]:
    made = legacy_marks.legacy_marks
    made.cache_clear()
    yield
    made.cache_clear()
    crash_points.handlers.clear()


def others(redis: Redis) -> set[bytes]:
    """The keys that are not of the queue, nor of the broker."""
    return {
        key for key in redis.keys("*") if not key.startswith((b"cache:execution:refresh:", b"_kombu", b"harbor_"))
    }


def test_a_tick_takes_harbors_marks_and_claims_them_at_once(redis: Redis, told: list[Any]) -> None:
    redis.mset({KEY.format(7, "SCAN_ALL"): "", "execution:id:8:vendor:GARBAGE_COLLECTION:status_outdate": ""})
    redis.sadd(SET, "9:REPLICATION", "7:SCAN_ALL")
    published: list[Any] = []
    assert dispatch(published.extend, 0) == 3
    assert {member for claim in published for member in claim.members} == {
        "7:SCAN_ALL",
        "8:GARBAGE_COLLECTION",
        "9:REPLICATION",
    }
    assert (marked(redis), others(redis)) == (set(), set())
    assert names(told)[0] == "legacy_taken"


@pytest.mark.parametrize("rest", [3_600_000, None])
def test_marks_are_looked_for_although_the_clock_of_redis_has_gone_back_or_a_rest_never_ends(
    rest: int | None, redis: Redis
) -> None:
    redis.set(REST, 1, px=rest)
    redis.set(KEY.format(7, "SCAN"), "")
    marks = legacy_marks.legacy_marks()
    assert marks.look() == 1
    assert 0 < redis.pttl(REST) <= 10_000
    redis.set(KEY.format(8, "SCAN"), "")
    assert marks.look() == 0, "the next look is due later"


def test_while_refreshing_is_paused_a_tick_takes_nothing(redis: Redis) -> None:
    redis.set(KEY.format(7, "SCAN"), "")
    pause("harbor_refresh", at_terminal())
    assert dispatch(lambda claims: None, 0) == 0
    assert others(redis) == {KEY.format(7, "SCAN").encode()}
    resume("harbor_refresh", at_terminal())
    assert dispatch(lambda claims: None, 0) == 1


def test_a_redis_that_refuses_the_look_keeps_no_tick_from_its_work(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, told: list[Any]
) -> None:
    """The rights of its user are those of the queue alone."""
    redis.acl_setuser(
        "limited",
        enabled=True,
        nopass=True,
        categories=["+@all"],
        keys=["cache:execution:refresh:*"],
        reset=True,
    )
    limited = connect(servers.redis.url.replace("redis://", "redis://limited:any@"), 2, tries=1)
    transfer = legacy_marks.LegacyMarks(legacy_marks.refresh_settings(), limited, limited)
    monkeypatch.setattr(legacy_marks, "legacy_marks", lambda: transfer)
    redis.set(KEY.format(7, "SCAN"), "")
    execution_queue().mark(["8:SCAN"])
    for _ in range(2):
        dispatch(lambda claims: None, 0)
    assert names(told).count("legacy_unread") == 1, "the next look is due later"
    assert "claimed" in names(told)
    assert others(redis) == {KEY.format(7, "SCAN").encode()}
    limited.close()
    redis.acl_deluser("limited")


def test_an_export_is_what_waits_and_what_is_in_flight_and_can_be_taken_again(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["7:SCAN"])
    queue.claim("node", 1)
    queue.mark(["8:SCAN"])
    pause("harbor_refresh", at_terminal())
    assert data("harbor", "marks", "export") == {"moved": 2, "left": 0}
    assert others(redis) == {KEY.format(7, "SCAN").encode(), KEY.format(8, "SCAN").encode()}
    assert marked(redis) == set()
    assert not redis.exists("cache:execution:refresh:processing")
    assert list(AuditEntry.objects.filter(verb=Word.EXPORT).values_list("count", flat=True)) == [2]
    assert legacy_marks.legacy_marks().look() == 2
    assert (others(redis), marked(redis)) == (set(), {"7:SCAN", "8:SCAN"})


def test_an_export_is_refused_while_ticks_would_take_the_marks_in_again(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["8:SCAN"])
    queue.heartbeat("node")
    ended = threading.Event()

    def beats() -> None:
        while not ended.wait(0.05):
            queue.heartbeat("node")

    with in_background(beats) as beaten:
        _, failure = failing("harbor", "marks", "export")
        ended.set()
        beaten()
    assert "the ticks of 1 live process of workers would take the marks in again" in failure
    assert "manage.py harbor pause" in failure
    assert marked(redis) == {"8:SCAN"}
    pause("harbor_refresh", at_terminal())
    assert export_marks() == 1


def test_an_export_waits_until_a_worker_that_was_killed_counts_as_silent(redis: Redis) -> None:
    """Its last heartbeat came nine seconds ago; after ten it is silent."""
    queue = execution_queue()
    queue.mark(["8:SCAN"])
    queue.claim("node", 1)
    seconds, _ = redis.time()
    redis.zadd("cache:execution:refresh:nodes", {"node": (seconds - 9) * 1_000_000})
    assert data("harbor", "marks", "export") == {"moved": 1, "left": 0}
    assert others(redis) == {KEY.format(8, "SCAN").encode()}


def test_an_export_waits_for_no_worker_that_said_that_it_stops(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["8:SCAN"])
    queue.heartbeat("node")
    queue.leave("node")
    assert queue.stats().nodes == ("node",)
    assert export_marks() == 1


def test_marks_and_claims_that_come_while_an_export_runs_are_exported_as_well(redis: Redis) -> None:
    """A member that is claimed behind the export's back is found by its next pass."""
    queue = execution_queue()
    queue.mark(["7:SCAN"])

    def claims_another(point: str, ids: Any) -> None:
        if not redis.exists(KEY.format(8, "SCAN")) and not marked(redis):
            queue.mark(["8:SCAN"])
            queue.claim("node", 1)

    pause("harbor_refresh", at_terminal())
    crash_points.handlers.append(claims_another)
    assert export_marks() == 2
    assert others(redis) == {KEY.format(7, "SCAN").encode(), KEY.format(8, "SCAN").encode()}
    assert not redis.exists("cache:execution:refresh:processing", "cache:execution:refresh:queue:v2")


def test_what_an_export_cannot_read_is_told(redis: Redis) -> None:
    redis.sadd("cache:execution:refresh:queue:v2", "unreadable", "8:SCAN")
    out, failure = failing("harbor", "marks", "export")
    assert out == "Turned 1 execution into marks of Harbor.\n"
    assert failure == "1 mark of ours came meanwhile, or cannot be read: run it again"


@pytest.mark.parametrize("strategy", ["scan", "lock", "hash", "upstream"])
def test_with_an_older_design_nothing_is_taken_in(strategy: str, redis: Redis, settings: Settings) -> None:
    settings.REFRESH_STRATEGY = strategy
    redis.set(KEY.format(7, "SCAN"), "")
    claim_batch()
    with pytest.raises(Refused, match=f"the strategy is {strategy}"):
        export_marks()
    assert (marked(redis), redis.exists(KEY.format(7, "SCAN"))) == (set(), 1)


def test_without_a_queue_a_tick_takes_marks_in(redis: Redis, settings: Settings) -> None:
    """Beat and workers may run all the same: they serve jobs, for example."""
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    redis.set(KEY.format(7, "SCAN"), "")
    assert dispatch(lambda claims: None, 0) == 1
    assert others(redis) == set()
