"""Beat's rows: what the migration creates, what the environment rules, what stays the administrator's."""

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from types import SimpleNamespace
from typing import Any

import pytest
from celery.app import base as celery_base
from celery.apps.beat import Beat
from celery.beat import Service
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from django_celery_beat import schedulers
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks
from pytest_django import Settings

from harbor_refresh.celery import app as celery_app
from harbor_refresh.tasks.broker.celery_queues import TICKS, WORK
from harbor_refresh.tasks.broker.channels import waiting
from harbor_refresh.tasks.celery_tasks import claim_batch, reap, reconcile, recover_stale, sweep
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.pipeline import beat
from harbor_refresh.tasks.pipeline.beat import PatientScheduler
from harbor_refresh.tasks.pipeline.schedule import follow_setting, restore_rows
from tests.integration.concurrency import at_once, in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "redis")

TICK_TASKS = [claim_batch, recover_stale, reconcile, reap, sweep]


def schedule() -> dict[str, tuple[str, str, bool]]:
    return {
        row.name: (row.task, str(row.interval or row.crontab), row.enabled)
        for row in PeriodicTask.objects.all()
        if not row.name.startswith("celery.")
    }


OURS = {
    "Claim batches": ("tasks.claim_batch", "every 30 seconds", True),
    "Recover stale claims": ("tasks.recover_stale", "every 5 seconds", True),
    "Reconcile": ("tasks.reconcile", "every 60 seconds", True),
    "Reap jobs": ("tasks.reap", "every 3600 seconds", True),
    "Deliver": ("tasks.deliver", "every 30 seconds", True),
    "Sweep": ("tasks.sweep", "every 86400 seconds", True),
    "Sample": ("tasks.sample", "every 10 seconds", True),
}


def test_every_row_names_a_task_that_a_worker_knows() -> None:
    celery_app.loader.import_default_modules()
    for task, _, _ in schedule().values():
        assert task in celery_app.tasks


def test_beat_changes_at_its_start_only_rows_that_the_environment_names(settings: Settings) -> None:
    settings.SET_IN_ENVIRONMENT = frozenset()
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 7
    follow_setting()
    assert schedule() == OURS


@pytest.fixture
def interval(settings: Settings) -> Callable[[float], None]:
    """The environment says it, and beat starts."""

    def say(seconds: float) -> None:
        settings.SET_IN_ENVIRONMENT = frozenset(["EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS"])
        settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = seconds
        follow_setting()

    return say


def test_an_interval_in_the_environment_overrides_its_row_and_leaves_the_switch_of_an_administrator(
    interval: Callable[[float], None],
) -> None:
    """Intervals that were made twice by hand do not stop beat, nor does a crontab."""
    rows = PeriodicTask.objects.filter(name="Claim batches")
    rows.update(enabled=False, interval=None, crontab=CrontabSchedule.objects.create(minute="5"))
    for _ in range(2):
        IntervalSchedule.objects.create(every=90, period="seconds")
    for _ in range(2):
        interval(90)
    assert schedule() == OURS | {"Claim batches": ("tasks.claim_batch", "every 90 seconds", False)}
    interval(0.5)
    assert rows.get().schedule.run_every.total_seconds() == 0.5


@pytest.mark.parametrize("seconds", [0, -1])
def test_an_interval_of_zero_has_no_ticks_and_leaves_the_row(
    interval: Callable[[float], None], seconds: int
) -> None:
    interval(seconds)
    assert schedule() == OURS


def test_an_administrators_edit_survives_a_migration_and_a_start_of_beat(settings: Settings) -> None:
    settings.SET_IN_ENVIRONMENT = frozenset()
    row = PeriodicTask.objects.get(name="Claim batches")
    row.interval = IntervalSchedule.objects.create(every=11, period="seconds")
    row.enabled = False
    row.save()
    call_command("migrate", verbosity=0)
    restore_rows()
    follow_setting()
    assert schedule() == OURS | {"Claim batches": ("tasks.claim_batch", "every 11 seconds", False)}


def test_what_beat_writes_of_a_run_leaves_what_a_person_changes_at_that_moment() -> None:
    scheduler = PatientScheduler(app=celery_app)
    ran = next(scheduler.schedule["Sweep"])
    others = PeriodicTask.objects.exclude(name="Sweep").values()
    before = list(others)

    def change() -> None:
        PeriodicTask.objects.filter(name="Sweep").update(enabled=False, description="not this week")

    with transaction_held_open(change) as commit, in_background(ran.save) as written:
        wait_until(waiting_for_locks, "beat to wait for the row")
        commit()
        written()
    row = PeriodicTask.objects.get(name="Sweep")
    assert (row.enabled, row.description) == (False, "not this week")
    assert (row.last_run_at, row.total_run_count) == (ran.model.last_run_at, 1)
    assert list(others.all()) == before


def test_beat_goes_on_with_its_rows_if_the_database_goes_down_while_it_reads_them_and_reads_them_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = PatientScheduler(app=celery_app)
    before = scheduler.schedule
    PeriodicTask.objects.filter(name="Sweep").update(enabled=False)
    PeriodicTasks.update_changed()

    def lose_the_connection(_: PatientScheduler) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with monkeypatch.context() as patch:
        patch.setattr(PatientScheduler, "enabled_models", lose_the_connection)
        assert scheduler.schedule is before
    assert before.keys() - scheduler.schedule.keys() == {"Sweep"}


@pytest.fixture
def clock_of_beat(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Set the clock of beat's machine ahead of that of PostgreSQL by so much."""
    by = timedelta(0)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + by

    def set_ahead(wanted: timedelta) -> None:
        nonlocal by
        by = wanted

    for module in (beat, celery_base):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(schedulers, "datetime", SimpleNamespace(datetime=Clock, timedelta=timedelta))
    monkeypatch.setattr(timezone, "now", lambda: Clock.now(UTC))
    return set_ahead


def beat_of_two_rows() -> PatientScheduler:
    """One row is due seldom, and one often. None is a crontab, which has a clock of its own."""
    PatientScheduler(app=celery_app)  # it creates the row of Celery
    PeriodicTask.objects.exclude(name__in=["Sweep", "Recover stale claims"]).update(enabled=False)
    return PatientScheduler(app=celery_app)


def sent_by(scheduler: PatientScheduler, redis: Redis) -> set[str]:
    """Let beat send what is due, and take it from the broker."""
    for _ in range(20):
        scheduler.tick()
    found = {json.loads(raw)["headers"]["task"] for raw in redis.lrange(TICKS, 0, -1)}
    redis.delete(TICKS)
    return found


@pytest.mark.parametrize("is_started_again", [False, True], ids=["it runs", "it is started again"])
def test_a_beat_whose_clock_was_ahead_sends_again_when_the_clock_is_right(
    clock_of_beat: Callable[[timedelta], None], redis: Redis, is_started_again: bool
) -> None:
    PeriodicTask.objects.update(last_run_at=timezone.now() - timedelta(days=2))
    clock_of_beat(timedelta(hours=1))
    scheduler = beat_of_two_rows()
    assert sent_by(scheduler, redis) == {"tasks.recover_stale", "tasks.sweep"}
    assert PeriodicTask.objects.get(name="Sweep").last_run_at > datetime.now(UTC) + timedelta(minutes=50)
    clock_of_beat(timedelta(0))
    if is_started_again:
        scheduler = PatientScheduler(app=celery_app)
    assert sent_by(scheduler, redis) == set()
    assert PeriodicTask.objects.get(name="Sweep").last_run_at <= datetime.now(UTC)
    clock_of_beat(timedelta(seconds=6))
    assert sent_by(scheduler, redis) == {"tasks.recover_stale"}


def test_a_clock_that_steps_back_for_a_moment_changes_no_row(
    clock_of_beat: Callable[[timedelta], None], redis: Redis
) -> None:
    """Else a crontab whose minute has just begun would be sent twice."""
    PeriodicTask.objects.update(last_run_at=timezone.now() - timedelta(days=2))
    clock_of_beat(timedelta(seconds=30))
    scheduler = beat_of_two_rows()
    assert "tasks.sweep" in sent_by(scheduler, redis)
    before = PeriodicTask.objects.get(name="Sweep").last_run_at
    clock_of_beat(timedelta(0))
    assert sent_by(scheduler, redis) == set()
    assert PeriodicTask.objects.get(name="Sweep").last_run_at == before


def test_rows_that_were_made_while_the_clock_was_ahead_are_sent(
    clock_of_beat: Callable[[timedelta], None], redis: Redis
) -> None:
    PeriodicTask.objects.all().delete()
    clock_of_beat(timedelta(hours=1))
    scheduler = PatientScheduler(app=celery_app)
    clock_of_beat(timedelta(0))
    sent_by(scheduler, redis)
    clock_of_beat(timedelta(seconds=6))
    assert "tasks.recover_stale" in sent_by(scheduler, redis)


@pytest.mark.parametrize("is_clock_wrong", [False, True], ids=["a row has changed", "the clock has gone back"])
def test_a_row_is_sent_once_although_the_database_goes_down_when_the_rows_are_read_again(
    clock_of_beat: Callable[[timedelta], None], redis: Redis, monkeypatch: pytest.MonkeyPatch, is_clock_wrong: bool
) -> None:
    PeriodicTask.objects.update(last_run_at=timezone.now() - timedelta(days=2))
    scheduler = beat_of_two_rows()
    assert "tasks.sweep" in sent_by(scheduler, redis)
    if is_clock_wrong:
        clock_of_beat(timedelta(milliseconds=-20))
    else:
        changes = iter([True])
        monkeypatch.setattr(schedulers.DatabaseScheduler, "schedule_changed", lambda _: next(changes, False))

    def refuse() -> None:
        raise OperationalError("connection refused")

    connection.close()
    with monkeypatch.context() as patch:
        patch.setattr(connection, "connect", refuse)
        assert "tasks.sweep" not in sent_by(scheduler, redis)


@pytest.mark.parametrize(
    ("wrong", "days"),
    [({"headers": "[]"}, 1), ({"args": "[" * 100_000}, 1), ({}, 2**31 - 1)],
    ids=["headers", "args", "interval"],
)
def test_a_row_that_cannot_be_read_is_left_out_and_ends_no_beat(
    wrong: dict[str, str], days: int, caplog: pytest.LogCaptureFixture
) -> None:
    interval = IntervalSchedule.objects.create(every=days, period="days")
    PeriodicTask.objects.create(name="Own", task="tasks.reconcile", interval=interval, **wrong)
    assert OURS.keys() <= PatientScheduler(app=celery_app).schedule.keys() <= {*OURS, "celery.backend_cleanup"}
    assert "Beat leaves out the periodic task Own: " in caplog.text


def test_beat_writes_nothing_of_a_row_that_a_person_deleted() -> None:
    scheduler = PatientScheduler(app=celery_app)
    ran = next(scheduler.schedule["Sweep"])
    PeriodicTask.objects.filter(name="Sweep").delete()
    with pytest.raises(PeriodicTask.DoesNotExist):
        ran.save()
    assert not PeriodicTask.objects.filter(name="Sweep").exists()


@pytest.mark.parametrize(
    "restore",
    [
        lambda: call_command("migrate", verbosity=0),
        lambda: PatientScheduler(app=celery_app, lazy=True).setup_schedule(),
    ],
    ids=["migrate", "beat"],
)
def test_a_deleted_row_is_restored(restore: Callable[[], object], settings: Settings) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 7
    PeriodicTask.objects.filter(name__in=["Reconcile", "Claim batches"]).delete()
    PeriodicTask.objects.filter(name="Sweep").update(enabled=False)
    restore()
    assert schedule() == OURS | {
        "Claim batches": ("tasks.claim_batch", "every 7 seconds", True),
        "Sweep": ("tasks.sweep", "every 86400 seconds", False),
    }


def test_rows_that_many_beats_restore_at_once_are_there_once() -> None:
    PeriodicTask.objects.filter(name__in=OURS).delete()
    IntervalSchedule.objects.all().delete()
    at_once(*[restore_rows] * 5)
    assert schedule() == OURS


# ticks


@pytest.mark.parametrize("tick", TICK_TASKS, ids=lambda task: task.name)
def test_ticks_do_not_pile_up_if_no_worker_takes_them(tick: Any, redis: Redis) -> None:
    sent = [tick.apply_async() for _ in range(20)]
    assert sum(one is not None for one in sent) == waiting(TICKS) == redis.llen(TICKS) == tick.most_waiting
    assert redis.exists(WORK) == 0


@pytest.mark.parametrize("rare", [reconcile, reap, sweep], ids=lambda task: task.name)
def test_ticks_that_come_often_leave_room_for_one_that_comes_seldom(rare: Any, redis: Redis) -> None:
    """Beat notes that it has sent the sweep, and sends the next one after a day."""
    for _ in range(20):
        claim_batch.apply_async()
        recover_stale.apply_async()
    assert rare.apply_async() is not None


def test_the_jobs_of_actions_on_many_keep_no_tick_away(redis: Redis) -> None:
    """With one process, each open action has a job in the queue while a tick runs, which may ask for another."""
    redis.rpush(TICKS, *["a job"] * bulk.MAX_OPEN)
    assert claim_batch.apply_async() is not None


def test_a_tick_expires_but_not_because_a_clock_is_minutes_off(redis: Redis) -> None:
    before = datetime.now(UTC)
    claim_batch.apply_async()
    after = datetime.now(UTC)
    raw = redis.lindex(TICKS, 0)
    assert raw is not None
    headers = json.loads(raw)["headers"]
    assert headers["task"] == "tasks.claim_batch"
    expires = datetime.fromisoformat(headers["expires"])
    assert before + timedelta(days=1) <= expires <= after + timedelta(days=1)


def test_a_refresh_subtask_shows_which_executions_it_refreshes(redis: Redis) -> None:
    from harbor_refresh.tasks.celery_tasks import publish
    from harbor_refresh.tasks.queue.claim import Claim

    publish(
        [
            Claim("n1", "7", ("5:REPLICATION",)),
            Claim("n1", "7", tuple(f"{number}:A" for number in range(11, 1011))),
        ]
    )
    messages = [json.loads(raw) for raw in redis.lrange(WORK, 0, -1)]
    assert {message["headers"]["argsrepr"] for message in messages} == {
        "(execution 5 REPLICATION)",
        "(1,000 executions, from 11 A on)",
    }
    assert waiting(WORK) == 2
    assert redis.exists(TICKS) == 0


def test_beat_replaces_celerys_handler_whose_statements_may_wait_for_one_that_it_interrupts() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        Beat(app=celery_app).install_sync_handler(Service(celery_app))
        PatientScheduler(app=celery_app)
        for number in before:
            handler: Any = signal.getsignal(number)
            assert handler.__module__ == "harbor_refresh.tasks.pipeline.beat"
            with pytest.raises(SystemExit):
                handler(number, None)
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def test_a_program_that_is_no_beat_keeps_its_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)
    PatientScheduler(app=celery_app)
    assert signal.getsignal(signal.SIGINT) is before
