"""Faults of settings, beat and the work itself, put there on purpose: the doctor names each."""

from datetime import UTC, datetime, timedelta

import pytest
from celery import current_app
from django.core.management import call_command
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from pytest_django import Settings

from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.pipeline import schedule
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from tests.integration.checks.examined import E, W, found
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted

pytestmark = pytest.mark.usefixtures("database", "redis")


# settings


def test_settings_of_production_are_checked_as_such(settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = False
    assert "security.W012" in [what.split(":")[0] for _, what in found("settings.checks")]


def of_settings(number: str) -> list[str]:
    """What the settings.checks say under this id."""
    return [what.partition(": ")[2] for _, what in found("settings.checks") if what.startswith(f"{number}:")]


def test_clocks_that_change_and_workers_that_hold_messages_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.USE_TZ = False
    monkeypatch.setitem(current_app.conf, "worker_prefetch_multiplier", 4)
    assert (len(of_settings("harbor_refresh.W004")), len(of_settings("harbor_refresh.W007"))) == (1, 1)


# beat


def test_a_row_of_the_schedule_that_is_gone() -> None:
    assert found("beat.rows") == []
    PeriodicTask.objects.filter(name="Reconcile").delete()
    ((level, what),) = found("beat.rows")
    assert (level, what.split(". ")[0]) == (E, "Beat's schedule has no row “Reconcile”")


def test_rows_that_were_edited_until_they_no_longer_work() -> None:
    rare = IntervalSchedule.objects.create(every=2, period="hours")
    PeriodicTask.objects.filter(name="Reconcile").update(interval=rare)
    PeriodicTask.objects.filter(name="Deliver").update(one_off=True, enabled=False)
    PeriodicTask.objects.filter(name="Sweep").update(task="tasks.swep")
    later = datetime.now(UTC) + timedelta(days=1)
    PeriodicTask.objects.filter(name="Reap jobs").update(start_time=later)
    assert [(level, what.split(" begins")[0]) for level, what in found("beat.rows")] == [
        (W, "The row Reconcile runs every 7,200 s, and every 60 s is usual."),
        (W, "The row Reap jobs"),
        (E, "The row Deliver runs once and not again (one-off)."),
        (E, "The row Sweep sends tasks.swep and not tasks.sweep."),
    ]


def test_a_beat_with_another_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_settings("harbor_refresh.W002") == []
    monkeypatch.setitem(current_app.conf, "beat_scheduler", "celery.beat:PersistentScheduler")
    assert len(of_settings("harbor_refresh.W002")) == 1


def test_a_scheduler_of_rows_whose_app_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(current_app.conf, "beat_scheduler", "django_celery_beat.schedulers:DatabaseScheduler")
    assert of_settings("harbor_refresh.E010") == []
    monkeypatch.setattr(schedule, "BEAT", "not_installed")
    assert len(of_settings("harbor_refresh.E010")) == 1


# the work


def test_a_status_that_differs_from_its_tasks_and_waits_for_nothing() -> None:
    execution = drifted(minutes=60)
    ((level, what),) = found("status.drift")
    assert (level, f"such as {execution.pk}." in what) == (E, True)
    call_command("harbor", "repair", "drift")
    assert found("status.drift") == []  # it is on the queue


def test_a_mark_that_was_lost_a_moment_ago_is_only_a_warning() -> None:
    drifted(minutes=1)
    assert [level for level, _ in found("status.drift")] == [W]


def test_looking_for_drift_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    drifted()
    before = Watermark.objects.count()
    assert len(found("status.drift")) == 1
    assert (Watermark.objects.count(), caplog.text) == (before, "")


def test_a_reconcile_that_does_not_run() -> None:
    reconcile()
    assert found("status.reconcile") == []
    with connection.cursor() as cursor:
        cursor.execute("UPDATE execution_watermark SET last_pass_at = now() - interval '2 hours'")
    ((level, what),) = found("status.reconcile")
    assert (level, what.split(". ")[0]) == (E, "Reconcile has not completed a pass for 2 h")


def test_claims_that_no_recovery_has_released(redis: Redis) -> None:
    old = round((datetime.now(UTC).timestamp() - 3 * pacing.STALE_SECONDS) * 1_000_000)
    fresh = round(datetime.now(UTC).timestamp() * 1_000_000)
    redis.sadd("cache:execution:refresh:processing", f"1:A:n1:{old}", f"2:A:n1:{fresh}", "garbage")
    assert found("status.claims") == [
        (E, "Recovery has not released 1 claim, although more than 600 s have passed.")
    ]


def test_a_webhook_that_waits_after_failures() -> None:
    row = subscriptions.create("pager", "https://example.com/")
    now = datetime.now(UTC)
    down = {"failures": 5, "failing_since": now - timedelta(minutes=4), "retry_at": now + timedelta(minutes=2)}
    for change, count in ((down, 1), ({"enabled": False}, 0), ({"enabled": True, "retry_at": now}, 0)):
        Subscription.objects.filter(pk=row.pk).update(**change)
        told = found("status.webhooks")
        assert [(level, "the webhook pager for a while" in what) for level, what in told] == [(W, True)] * count
