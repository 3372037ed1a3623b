"""Samples: the state of two days in rows, and what happened between two of them."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import connection
from django.db.models import F
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from harbor_refresh.executions.news import counters
from harbor_refresh.executions.news.counters import REPORT_TO_TRUE_SECONDS
from harbor_refresh.tasks.celery_tasks import sample
from harbor_refresh.tasks.models import Sample
from harbor_refresh.tasks.news import samples
from harbor_refresh.tasks.news.samples import Point
from harbor_refresh.tasks.news.state import ServiceState

pytestmark = pytest.mark.usefixtures("database", "redis")

STATE = ServiceState(backlog=7)
NO_LATENCY = [0] * len(counters.labels_of(REPORT_TO_TRUE_SECONDS))


def moved(**age: float) -> None:
    """Make all samples older."""
    Sample.objects.update(at=F("at") - timedelta(**age))


def rows() -> list[dict[str, Any]]:
    return list(Sample.objects.order_by("at").values())


def known(points: list[Point]) -> list[Point]:
    return [point for point in points if point != Point(point.begins)]


def test_a_sample_holds_the_state_and_the_counters() -> None:
    counters.add(
        {
            ("refreshes", "result=changed"): 5,
            ("refreshes", "result=unchanged"): 3,
            ("refreshes", "result=failed"): 1,
            ("executions_recovered", ""): 4,
            (REPORT_TO_TRUE_SECONDS, "le=0.25"): 1,
            (REPORT_TO_TRUE_SECONDS, counters.SUM): 200_000,
        }
    )
    samples.record(STATE)
    (row,) = rows()
    at = row.pop("at")
    assert datetime.now(UTC) - at < timedelta(seconds=60)
    assert at.second % 5 == 0
    latency = [1 if label == "le=0.25" else 0 for label in counters.labels_of(REPORT_TO_TRUE_SECONDS)]
    assert row == {"backlog": 7, "refreshed": 8, "failed": 1, "recovered": 4, "latency": latency}


def test_what_is_not_known_is_null_and_not_zero() -> None:
    samples.record(ServiceState(absent={"redis": "Redis: gone"}))
    (row,) = rows()
    assert row["backlog"] is None


def test_processes_that_sample_at_once_add_one_row() -> None:
    def add() -> None:
        samples.record(STATE)
        connection.close()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(rows()) <= 2, "two, if the five seconds end meanwhile"


def test_samples_of_more_than_two_days_are_deleted_with_the_next() -> None:
    samples.record(STATE)
    moved(hours=47)
    samples.record(STATE)
    moved(hours=1, minutes=1)
    samples.record(STATE)
    assert len(rows()) == 2


def put(at: datetime, **values: Any) -> None:
    Sample.objects.create(
        **{"at": at, "refreshed": 0, "failed": 0, "recovered": 0, "latency": NO_LATENCY, "backlog": 0} | values
    )


@pytest.fixture
def begin() -> datetime:
    """The begin of a slot of the hour, ten minutes ago."""
    now = datetime.now(UTC) - timedelta(minutes=10)
    return now.replace(second=now.second // 30 * 30, microsecond=0)


def at(begin: datetime, seconds: float) -> datetime:
    return begin + timedelta(seconds=seconds)


def test_a_point_is_what_happened_since_the_slot_before(begin: datetime) -> None:
    slow = [*NO_LATENCY[:-1], 0]
    slow[counters.labels_of(REPORT_TO_TRUE_SECONDS).index("le=5")] = 10
    put(at(begin, 20), refreshed=100)
    put(at(begin, 30), refreshed=130, backlog=50)
    put(at(begin, 50), refreshed=400, failed=2, recovered=3, latency=slow, backlog=9)
    (point,) = known(samples.read("hour"))
    assert point.begins == at(begin, 30)
    assert point.backlog == 50, "the worst of the slot"
    assert (point.refreshes, point.failed, point.recovered) == (10.0, 2, 3)
    assert point.typical is not None
    assert point.slow is not None
    assert 2.5 < point.typical < point.slow < 5


def test_a_slot_without_a_sample_is_a_gap_and_the_count_comes_with_the_next(begin: datetime) -> None:
    put(begin, refreshed=0)
    put(at(begin, 120), refreshed=240, recovered=6)
    points = [point for point in samples.read("hour") if point.begins > begin]
    assert [point.begins for point in points] == [at(begin, seconds) for seconds in (30, 60, 90, 120)]
    assert [point.refreshes for point in points] == [None, None, None, 2.0]
    assert points[-1].recovered == 6


def test_of_a_database_that_was_restored_only_the_state_is_known(begin: datetime) -> None:
    put(begin, refreshed=500, recovered=9)
    put(at(begin, 30), refreshed=100, backlog=4)
    (point,) = known(samples.read("hour"))
    assert (point.backlog, point.refreshes, point.recovered, point.slow) == (4, None, None, None)


def test_samples_of_a_clock_that_has_gone_back_are_not_shown_and_go_with_the_next(begin: datetime) -> None:
    put(begin, refreshed=0)
    put(at(begin, 30), refreshed=60)
    put(datetime.now(UTC) + timedelta(days=365), refreshed=90)
    assert len(known(samples.read("hour"))) == 1
    assert sample() == 1
    assert not Sample.objects.filter(at__gt=datetime.now(UTC)).exists()


def test_the_clock_of_the_process_that_draws_does_not_matter(
    begin: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(begin, refreshed=0)
    put(at(begin, 30), refreshed=60)
    slow_clock = Mock(wraps=datetime)
    slow_clock.now.return_value = datetime.now(UTC) - timedelta(hours=5)
    monkeypatch.setattr(samples, "datetime", slow_clock)
    points = samples.read("hour")
    assert at(begin, -3_600) < points[0].begins < points[-1].begins == at(begin, 30)


def test_samples_of_a_program_with_other_buckets_tell_no_latency(begin: datetime) -> None:
    put(begin, latency=[1, 2, 3])
    put(at(begin, 30), refreshed=60)
    (point,) = known(samples.read("hour"))
    assert (point.refreshes, point.typical) == (2.0, None)


def test_a_day_has_a_point_for_ten_minutes() -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    first = now.replace(minute=now.minute // 10 * 10) - timedelta(hours=20)
    for minutes in range(0, 60, 2):
        put(at(first, 60 * minutes), refreshed=60 * minutes, backlog=minutes)
    points = known(samples.read("day"))
    assert [point.begins for point in points] == [at(first, 600 * number) for number in range(1, 6)]
    assert [point.backlog for point in points] == [18, 28, 38, 48, 58]
    assert {round(point.refreshes or 0, 3) for point in points} == {1.0}


def test_with_a_longer_interval_the_slots_are_wider(begin: datetime) -> None:
    interval = IntervalSchedule.objects.create(every=60, period="seconds")
    PeriodicTask.objects.filter(task="tasks.sample").update(interval=interval)
    for number in range(6):
        put(at(begin, 60 * number), refreshed=60 * number)
    points = [point for point in samples.read("hour") if point.begins > at(begin, 30)]
    assert {point.refreshes for point in points} == {1.0}


def test_the_celery_task_samples(redis: Any) -> None:
    assert sample() == 1
    assert len(rows()) == 1
