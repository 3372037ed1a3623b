"""The verbs of the domain on a real database and a real Redis: what each leaves behind, faults included."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from pytest_django import Settings

from executions import signals, usecases
from executions.conf import refresh_settings
from executions.database import raise_if_away
from executions.errors import (
    AlreadyFinal,
    DatabaseAway,
    HasTasks,
    NoSuchExecution,
    QueueUnavailable,
    Refused,
)
from executions.models import Execution, Quarantine, StatusChange, Task, Watermark
from executions.queue import SMALL, ExecutionQueue, execution_queue, this_node
from executions.sql import statement
from executions.usecases import NewExecution, NewTask, Report, create, create_many, report
from executions.usecases.dispatching import MOMENT, SLOTS
from executions.usecases.quarantining import parole, quarantine
from executions.usecases.reconciling import LOCK, Reconciled
from executions.usecases.refreshing import Refreshed
from harbor_refresh.local.redis import EmbeddedRedis
from tasks.queues import TICKS
from tasks.wakeup import CLOSE_SECONDS
from tests import servers
from tests.integration.state import (
    Pause,
    Redis,
    absent_redis,
    in_background,
    rows,
    wait_until,
    waiting_for_locks,
    whole_redis,
)

pytestmark = pytest.mark.usefixtures("database", "redis")

AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_grace(settings: Settings) -> None:
    settings.REFRESH_RECONCILE_GRACE_SECONDS = 0


@pytest.fixture(autouse=True)
def no_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is marked again is claimed again at once: rests have tests of their own (test_heat.py)."""
    monkeypatch.setattr(execution_queue(), "_rest_us", 0)


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> None:
    client = absent_redis()
    away = ExecutionQueue(refresh_settings(), client, client)
    for module in ("usecases.dispatching", "usecases.working", "usecases.recovering", "strategies.claim"):
        monkeypatch.setattr(f"executions.{module}.execution_queue", lambda: away)


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Every signal that is sent, by its name."""
    heard: list[tuple[str, dict[str, Any]]] = []
    listeners = []
    for name, one in vars(signals).items():
        if isinstance(one, signals.Signal):

            def listen(sender: Any, signal: Any, name: str = name, **values: Any) -> None:
                heard.append((name, values))

            one.connect(listen, weak=False)
            listeners.append((one, listen))
    yield heard
    for one, listen in listeners:
        one.disconnect(listen)


def names(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [name for name, _ in told]


def made(count: int = 1, vendor: str = "TEST") -> tuple[Execution, list[int]]:
    execution = create(NewExecution(vendor, tasks=[NewTask()] * count))
    return execution, sorted(execution.tasks.values_list("pk", flat=True))


def member(execution: Execution) -> str:
    return f"{execution.pk}:{execution.vendor_type}"


def marked(redis: Redis) -> set[str]:
    found: set[str] = whole_redis(redis).get("queue:v2", set())
    return found


def status_of(execution: Execution) -> str:
    execution.refresh_from_db()
    return execution.status


# create


def test_ten_thousand_tasks_are_created_in_one_call() -> None:
    execution = create(
        NewExecution(
            "SCAN_ALL",
            vendor_id=7,
            trigger="SCHEDULE",
            extra_attrs={"a": 1},
            tasks=[NewTask(f"job-{number}", {"n": number}) for number in range(10_000)],
        )
    )
    assert rows(Execution)[execution.pk] | {"start_time": 0, "update_time": 0} == {
        "pk": execution.pk,
        "id": execution.pk,
        "vendor_type": "SCAN_ALL",
        "vendor_id": 7,
        "status": "Running",
        "status_message": "",
        "trigger": "SCHEDULE",
        "extra_attrs": {"a": 1},
        "start_time": 0,
        "update_time": 0,
        "end_time": None,
        "revision": 0,
    }
    tasks = list(execution.tasks.order_by("pk").values_list("job_id", "extra_attrs", "status"))
    assert tasks == [(f"job-{n}", {"n": n}, "Pending") for n in range(10_000)]


def test_many_executions_keep_their_own_tasks_in_their_order() -> None:
    executions = create_many(
        NewExecution("A", vendor_id=n, tasks=[NewTask(f"{n}-{i}") for i in range(n)]) for n in range(5)
    )
    assert [one.vendor_id for one in executions] == [0, 1, 2, 3, 4]
    for n, one in enumerate(executions):
        jobs = list(one.tasks.order_by("pk").values_list("job_id", flat=True))
        assert jobs == [f"{n}-{i}" for i in range(n)]


def test_a_new_execution_is_true_already() -> None:
    made(3)
    assert usecases.reconcile(full=True).drifted == 0


@pytest.mark.parametrize("vendor", ["", "A:B", ":", "V" * 65, "A\x00", "A\ud800", "\udfff"])
def test_a_vendor_that_the_queue_could_not_read_is_refused_and_nothing_is_written(
    vendor: str,
) -> None:
    with pytest.raises(Refused, match="takes 1 to 64 characters"):
        create_many([NewExecution("GOOD", tasks=[NewTask()]), NewExecution(vendor)])
    assert (rows(Execution), rows(Task)) == ({}, {})


# mark_done, mark_error


@pytest.mark.parametrize(("verb", "status"), [(usecases.mark_done, "Success"), (usecases.mark_error, "Error")])
def test_an_execution_without_tasks_ends_by_hand_once_and_history_tells(verb: Any, status: str) -> None:
    execution = create(NewExecution("TEST"))
    verb(execution.pk, "because")
    execution.refresh_from_db()
    assert (execution.status, execution.status_message, execution.revision) == (
        status,
        "because",
        1,
    )
    assert execution.end_time is not None
    before = (rows(Execution), rows(StatusChange))
    with pytest.raises(AlreadyFinal, match=f"execution {execution.pk} is {status} already"):
        usecases.mark_error(execution.pk)
    assert (rows(Execution), rows(StatusChange)) == before
    steps = execution.history.values_list("revision", "from_status", "to_status")
    assert list(steps) == [(1, "Running", status)]


def test_an_execution_with_tasks_cannot_be_set_by_hand() -> None:
    execution, _ = made()
    before = rows(Execution)
    with pytest.raises(HasTasks, match=f"execution {execution.pk} has tasks"):
        usecases.mark_done(execution.pk)
    assert rows(Execution) == before


def test_what_does_not_exist_cannot_be_set_or_stopped() -> None:
    for verb in (usecases.mark_done, usecases.mark_error, usecases.stop):
        with pytest.raises(NoSuchExecution, match="there is no execution 99"):
            verb(99)


def test_a_status_of_an_old_release_is_final_and_cannot_be_set_by_hand() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_status_known")
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_ends_when_final")
    execution = Execution.objects.create(vendor_type="TEST", status="Succeed", end_time=AGES_AGO)
    with pytest.raises(AlreadyFinal):
        usecases.mark_error(execution.pk)
    assert usecases.stop(execution.pk) == 0
    assert status_of(execution) == "Succeed"


# stop


def test_stopping_stops_what_is_not_final_and_its_execution_at_once(redis: Redis) -> None:
    execution, tasks = made(3)
    other, _ = made(1)
    report([Report(tasks[0], "Success")])
    redis.flushall()
    assert usecases.stop(execution.pk) == 2
    assert [row["status"] for row in rows(Task, execution=execution).values()] == [
        "Success",
        "Stopped",
        "Stopped",
    ]
    assert status_of(execution) == "Stopped"
    assert status_of(other) == "Running"
    assert marked(redis) == set()
    before = (rows(Execution), rows(Task), rows(StatusChange))
    assert usecases.stop(execution.pk) == 0
    assert (rows(Execution), rows(Task), rows(StatusChange)) == before


def test_a_stopped_task_that_reports_late_stays_stopped_until_it_runs_again() -> None:
    execution, tasks = made(1)
    usecases.stop(execution.pk)
    assert report([Report(tasks[0], "Success")]).applied == 0
    assert report([Report(tasks[0], "Running", 1)]).applied == 1
    usecases.refresh([execution.pk])
    assert status_of(execution) == "Running"


def test_an_execution_without_tasks_is_stopped_itself() -> None:
    execution = create(NewExecution("TEST"))
    assert usecases.stop(execution.pk) == 0
    assert status_of(execution) == "Stopped"
    assert execution.history.count() == 1
    assert usecases.stop(execution.pk) == 0
    assert execution.history.count() == 1


def test_a_stop_whose_refresh_fails_stops_the_tasks_and_marks(redis: Redis) -> None:
    execution, _ = made(1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution ADD CONSTRAINT never CHECK (status <> 'Stopped')")
    assert usecases.stop(execution.pk) == 1
    assert Task.objects.get().status == "Stopped"
    assert status_of(execution) == "Running"
    assert marked(redis) == {member(execution)}


def test_a_stop_and_a_delete_at_the_same_moment_do_not_deadlock(database: str) -> None:
    execution, tasks = made(2)
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[1]])
        with in_background(lambda: usecases.stop(execution.pk)) as stopped:
            wait_until(lambda: waiting_for_locks() == 1, "the stop waits for the second task")
            with in_background(lambda: usecases.delete([execution.pk])) as deleted:
                wait_until(lambda: waiting_for_locks() == 2, "the delete waits for the stop")
                other.rollback()
                assert deleted() == 1
                assert stopped() == 2
    assert not Execution.objects.exists()


def in_another_order_on_disk(task: int) -> None:
    """Its row is the last one now, wherever a scan without an order meets it."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET update_time = now() WHERE id = %s", [task])


def test_a_delete_and_a_report_at_the_same_moment_do_not_deadlock(database: str) -> None:
    """Both lock tasks in id order, wherever they lie."""
    execution, tasks = made(3)
    in_another_order_on_disk(tasks[0])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[2]])
        with in_background(lambda: usecases.delete([execution.pk])) as deleted:
            wait_until(lambda: waiting_for_locks() == 1, "the delete waits for the last task")
            reports = [Report(tasks[1], "Success"), Report(tasks[0], "Success")]
            with in_background(lambda: report(reports)) as reported:
                wait_until(lambda: waiting_for_locks() == 2, "the report waits for the delete")
                other.rollback()
                assert deleted() == 1
                outcome = reported()
    assert (outcome.applied, outcome.unchanged) == (0, 0)
    assert [one.reason for one in outcome.refused] == [f"there is no task {pk}" for pk in (tasks[1], tasks[0])]
    assert (rows(Execution), rows(Task)) == ({}, {})


def test_a_report_that_was_first_is_waited_for_by_the_delete(database: str) -> None:
    execution, tasks = made(3)
    in_another_order_on_disk(tasks[0])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[2]])
        reports = [Report(pk, "Success") for pk in reversed(tasks)]
        with in_background(lambda: report(reports)) as reported:
            wait_until(lambda: waiting_for_locks() == 1, "the report waits for the last task")
            with in_background(lambda: usecases.delete([execution.pk])) as deleted:
                wait_until(lambda: waiting_for_locks() == 2, "the delete waits for the report")
                other.rollback()
                assert reported().applied == 3
                assert deleted() == 1
    assert (rows(Execution), rows(Task)) == ({}, {})


def test_a_stop_that_comes_while_its_execution_is_deleted_finds_nothing(database: str) -> None:
    execution, tasks = made(3)
    in_another_order_on_disk(tasks[0])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [tasks[2]])
        with in_background(lambda: usecases.delete([execution.pk])) as deleted:
            wait_until(lambda: waiting_for_locks() == 1, "the delete waits for the last task")
            with in_background(lambda: usecases.stop(execution.pk)) as stopped:
                wait_until(lambda: waiting_for_locks() == 2, "the stop waits for the delete")
                other.rollback()
                assert deleted() == 1
                with pytest.raises(NoSuchExecution):
                    stopped()
    assert (rows(Execution), rows(Task)) == ({}, {})


# delete


def test_deleting_takes_tasks_history_and_quarantine_along_and_nothing_else() -> None:
    doomed, kept = [made(2)[0] for _ in range(2)]
    for one in (doomed, kept):
        usecases.stop(one.pk)
        Quarantine.objects.create(execution=one, reason="x", attempts=1)
    before = (rows(Execution), rows(Task), rows(StatusChange), rows(Quarantine))
    assert usecases.delete([doomed.pk, 10**9]) == 1
    assert (rows(Execution), rows(Task), rows(StatusChange), rows(Quarantine)) == tuple(
        {
            pk: row
            for pk, row in table.items()
            if doomed.pk not in (row.get("execution_id"), row["pk"] if index == 0 else None)
        }
        for index, table in enumerate(before)
    )
    assert usecases.delete([doomed.pk]) == 0
    assert usecases.delete([]) == 0


def test_what_is_left_of_a_deleted_execution_in_redis_is_completed_silently(redis: Redis, told: list[Any]) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claim = execution_queue().claim_batch("me", 10).claim
    usecases.delete([execution.pk])
    told.clear()
    outcome = usecases.work(claim)
    assert (outcome.succeeded, outcome.failed) == (0, {})
    assert names(told) == ["refreshed"]
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


# marks


def test_a_mark_is_sent_only_after_the_commit(redis: Redis) -> None:
    execution, tasks = made(1)
    with transaction.atomic():
        report([Report(tasks[0], "Running")])
        assert marked(redis) == set()
    assert marked(redis) == {member(execution)}


def test_a_rollback_marks_nothing_and_reports_nothing(redis: Redis) -> None:
    _, tasks = made(1)
    before = rows(Task)
    with transaction.atomic():
        report([Report(tasks[0], "Running")])
        transaction.set_rollback(True)
    assert rows(Task) == before
    assert whole_redis(redis) == {}


def test_a_savepoint_that_is_rolled_back_marks_nothing(redis: Redis) -> None:
    kept, kept_tasks = made(1)
    _, lost_tasks = made(1)
    with transaction.atomic():
        report([Report(kept_tasks[0], "Running")])
        with transaction.atomic():
            report([Report(lost_tasks[0], "Running")])
            transaction.set_rollback(True)
    assert marked(redis) == {member(kept)}


def test_reports_that_change_nothing_mark_nothing(redis: Redis) -> None:
    _, tasks = made(1)
    report([Report(tasks[0], "Running")])
    redis.flushall()
    report([Report(tasks[0], "Running"), Report(tasks[0], "Pending")])
    assert whole_redis(redis) == {}


def test_with_redis_away_a_report_lands_and_says_what_it_could_not_do(
    redis_away: None, caplog: pytest.LogCaptureFixture
) -> None:
    _, tasks = made(1)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(tasks[0], "Running")]).applied == 1
    assert Task.objects.get().status == "Running"
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 1
    assert lines[0].startswith("Could not mark 1 executions, reconcile will find them: Redis: ConnectionError")


def test_with_the_broker_away_a_report_lands_and_says_so(
    monkeypatch: pytest.MonkeyPatch, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    from kombu.exceptions import OperationalError

    def away(queue: str) -> int:
        raise OperationalError("the broker is away")

    monkeypatch.setattr("tasks.tick.waiting", away)
    execution, tasks = made(1)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(tasks[0], "Running")]).applied == 1
    assert marked(redis) == {member(execution)}
    assert [one.getMessage() for one in caplog.records] == [
        "Could not wake a tick, the next one of the schedule will do: the broker is away"
    ]


REPORTS_TWICE = """
import sys, django
django.setup()
from executions.usecases import Report, report
for status in ("Scheduled", "Running"):
    sys.stdin.readline()
    print(report([Report(int(sys.argv[1]), status)]).applied, flush=True)
"""


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "hanging"])
def test_a_broker_of_its_own_that_dies_stops_no_report(
    is_killed: bool, database: str, redis: Redis, tmp_path: Path
) -> None:
    """With a connection to it open, which breaks (or says nothing more) in the middle of a hint."""
    execution, tasks = made(1)
    broker = EmbeddedRedis(tmp_path / "broker")
    broker.start()
    environment = os.environ | {
        "DATABASE_URL": servers.postgres.url_for(database),
        "CELERY_BROKER_URL": broker.url,
        "DJANGO_SETTINGS_MODULE": "settings.dev",
    }
    command = [sys.executable, "-c", REPORTS_TWICE, str(tasks[0])]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as ran:
        assert ran.stdin is not None
        assert ran.stdout is not None
        assert ran.stderr is not None
        pid = int((tmp_path / "broker" / "server.pid").read_text())
        try:
            ran.stdin.write("\n")
            ran.stdin.flush()
            assert ran.stdout.readline() == "1\n"
            with Redis.from_url(broker.url) as client:
                assert client.llen(TICKS) == 1
            redis.flushall()
            os.kill(pid, signal.SIGKILL if is_killed else signal.SIGSTOP)
            began = time.monotonic()
            ran.stdin.write("\n")
            ran.stdin.flush()
            assert ran.stdout.readline() == "1\n"
            assert time.monotonic() - began < 20
            said = ran.stderr.read()
            assert ran.wait(timeout=20) == 0
        finally:
            ran.kill()
            if not is_killed:
                os.kill(pid, signal.SIGCONT)
            broker.stop(immediate=True)
    assert said.count("Could not wake a tick, the next one of the schedule will do: ") == 1
    assert "Traceback" not in said
    assert Task.objects.get().status == "Running"
    assert marked(redis) == {member(execution)}


def test_whatever_a_hint_raises_the_report_lands(
    monkeypatch: pytest.MonkeyPatch, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_it(queue: str) -> int:
        raise AttributeError("'NoneType' object has no attribute 'send_command'")

    monkeypatch.setattr("tasks.tick.waiting", raise_it)
    execution, tasks = made(1)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(tasks[0], "Running")]).applied == 1
    assert marked(redis) == {member(execution)}
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        (
            "WARNING",
            "Could not wake a tick, the next one of the schedule will do: "
            "'NoneType' object has no attribute 'send_command'",
        )
    ]


def test_a_report_that_stops_a_task_refreshes_at_once_and_marks_too(redis: Redis) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Stopped")])
    assert status_of(execution) == "Stopped"
    assert marked(redis) == {member(execution)}


def test_a_report_that_ends_a_task_otherwise_waits_for_the_queue(redis: Redis) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    assert status_of(execution) == "Running"
    assert marked(redis) == {member(execution)}


@pytest.mark.parametrize("interval", [0, -1])
def test_with_an_interval_of_zero_the_reporting_process_refreshes_and_touches_no_redis(
    interval: int, settings: Settings, redis: Redis, redis_away: None, told: list[Any]
) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = interval
    execution, tasks = made(2)
    report([Report(tasks[0], "Success"), Report(tasks[1], "Error")])
    assert status_of(execution) == "Error"
    assert redis.keys("*") == []
    assert told == []


def test_with_an_interval_of_zero_reconcile_heals_without_redis(
    settings: Settings, redis: Redis, redis_away: None
) -> None:
    execution = drifted()
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    assert usecases.reconcile().marked == 1
    assert status_of(execution) == "Success"
    assert redis.keys("*") == []


# work


def test_a_claim_is_worked_once_and_told_in_the_words_operators_grep_for(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claims: list[Any] = []
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert usecases.dispatch(claims.extend, 0) == 1
        outcome = usecases.work(claims[0])
        assert (outcome.succeeded, outcome.changed) == (1, 1)
        assert usecases.work(claims[0]).succeeded == 0
    assert status_of(execution) == "Success"
    assert [one.getMessage() for one in caplog.records] == [
        "Claimed 1 executions for processing",
        "Refresh outdate execution status done, 1 succeed, 0 failed",
        f"1 of a claim of {this_node.name} had been recovered meanwhile: left alone",
    ]
    assert set(whole_redis(redis)) <= {"nodes", "stamp", "cursor", "wake"}


def test_a_mark_that_arrives_while_its_execution_is_refreshed_is_refreshed_again(
    redis: Redis,
) -> None:
    execution, tasks = made(2)
    report([Report(tasks[0], "Success")])
    claim = execution_queue().claim_batch("me", 10).claim
    with Pause("deciding") as pause, in_background(lambda: usecases.work(claim)) as worked:
        assert pause.reached.wait(20)
        report([Report(tasks[1], "Success")])
        pause.go_on.set()
        worked()
    assert marked(redis) == {member(execution)}
    assert status_of(execution) == "Running"
    usecases.work(execution_queue().claim_batch("me", 10).claim)
    assert status_of(execution) == "Success"
    assert marked(redis) == set()


def one_row_of_history_for_each_revision(execution: Execution) -> bool:
    execution.refresh_from_db()
    rows = StatusChange.objects.filter(execution_id=execution.pk).order_by("revision")
    return [row.revision for row in rows] == list(range(1, execution.revision + 1))


def test_of_two_live_claims_of_one_execution_the_second_passes_over_the_locked_row_and_comes_again(
    redis: Redis,
) -> None:
    execution, tasks = made(2)
    report([Report(tasks[0], "Success")])
    queue = execution_queue()
    first = queue.claim_batch("me", 10).claim
    with Pause("deciding") as pause, in_background(lambda: usecases.work(first)) as worked:
        assert pause.reached.wait(20)
        report([Report(tasks[1], "Success")])
        second = queue.claim_batch("other", 10).claim
        assert second.members == first.members == (member(execution),)
        assert usecases.work(second) == Refreshed(busy={execution.pk})
        assert marked(redis) == {member(execution)}
        assert len(whole_redis(redis)["processing"]) == 1, "the first is still at work"
        pause.go_on.set()
        worked()
    assert status_of(execution) == "Running"
    assert marked(redis) == {member(execution)}
    assert usecases.work(queue.claim_batch("me", 10).claim).changed == 1
    assert status_of(execution) == "Success"
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))
    assert one_row_of_history_for_each_revision(execution)


def test_two_live_claims_of_one_execution_both_end_and_change_it_once(redis: Redis) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    queue = execution_queue()
    first = queue.claim_batch("me", 10).claim
    queue.add([member(execution)])
    second = queue.claim_batch("me", 10).claim
    assert [usecases.work(claim) for claim in (second, first)] == [
        Refreshed(succeeded=1, changed=1),
        Refreshed(succeeded=1, changed=0),
    ]
    assert status_of(execution) == "Success"
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))
    assert one_row_of_history_for_each_revision(execution)


def test_each_of_two_live_claims_that_fail_counts_and_the_member_waits_once(redis: Redis) -> None:
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    cursed(execution)
    queue = execution_queue()
    first = queue.claim_batch("me", 10).claim
    queue.add([member(execution)])
    second = queue.claim_batch("me", 10).claim
    for claim in (first, second):
        assert set(usecases.work(claim).failed) == {execution.pk}
    state = whole_redis(redis)
    assert (state["queue:v2"], state["attempts"]) == ({member(execution)}, {member(execution): "2"})
    assert "processing" not in state


def test_two_members_of_one_execution_are_both_completed(redis: Redis) -> None:
    """Somebody wrote another vendor: `1:A` and `1:B` name the same row."""
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    execution_queue().add([f"{execution.pk}:OTHER"])
    usecases.work(execution_queue().claim_batch("me", 10).claim)
    assert not {"queue:v2", "processing"} & set(whole_redis(redis))


def cursed(execution: Execution) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE execution ADD CONSTRAINT cursed CHECK (id <> {execution.pk}) NOT VALID")


def test_what_fails_too_often_is_quarantined_with_its_reason_and_blocks_nobody(
    redis: Redis, told: list[Any]
) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    cursed(bad)
    limit = refresh_settings().max_attempts
    for attempt in range(1, limit + 1):
        assert not Quarantine.objects.exists()
        claim = execution_queue().claim_batch("me", 10).claim
        outcome = usecases.work(claim)
        assert set(outcome.failed) == {bad.pk}
        assert outcome.succeeded == (1 if attempt == 1 else 0)
    assert status_of(good) == "Success"
    row = Quarantine.objects.get()
    assert (row.execution_id, row.attempts) == (bad.pk, limit)
    assert 'violates check constraint "cursed"' in row.reason
    assert ("quarantined", {"execution_ids": [bad.pk], "reason": row.reason}) in told
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


def test_a_quarantine_of_what_is_deleted_meanwhile_leaves_nothing() -> None:
    quarantine(["99:TEST"])
    assert rows(Quarantine) == {}


def test_with_the_database_away_a_claim_goes_back_uncounted_and_nobody_claims_for_a_moment(
    redis: Redis, told: list[Any], settings: Settings
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claim = execution_queue().claim_batch("me", 10).claim
    port, told[:] = connection.settings_dict["PORT"], []
    connection.close()
    connection.settings_dict["PORT"] = "1"
    try:
        usecases.work(claim)
    finally:
        connection.settings_dict["PORT"] = port
    assert names(told) == ["database_away"]
    state = whole_redis(redis)
    assert (state["queue:v2"], state["pause"]) == ({member(execution)}, "1")
    assert not {"processing", "attempts"} & set(state)
    assert len(execution_queue().claim_batch("me", 10).claim) == 0


LOCKED = 20


def two_hundred() -> tuple[list[int], set[str]]:
    """Ids and members of executions that are marked, and Success once they are refreshed."""
    executions = create_many([NewExecution("TEST", tasks=[NewTask()])] * 200)
    report([Report(pk, "Success") for pk in Task.objects.values_list("pk", flat=True)])
    return [one.pk for one in executions], {member(one) for one in executions}


@pytest.mark.parametrize("strength", ["UPDATE", "NO KEY UPDATE", "SHARE"])
def test_what_somebody_else_has_locked_goes_back_uncounted_and_the_others_do_not_wait(
    strength: str, redis: Redis, database: str, told: list[Any]
) -> None:
    ids, members = two_hundred()
    locked = set(ids[::10])
    assert len(locked) == LOCKED
    claim = execution_queue().claim_batch("me", 1000).claim
    assert set(claim.members) == members
    told.clear()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute(f"SELECT FROM execution WHERE id = ANY(%s) FOR {strength}", [list(locked)])
        began = time.monotonic()
        outcome = usecases.work(claim)
        assert time.monotonic() - began < 2
    assert outcome == Refreshed(succeeded=180, changed=180, failed={}, busy=locked)
    assert names(told) == ["refreshed"]
    assert {pk: row["status"] for pk, row in rows(Execution).items()} == {
        pk: "Running" if pk in locked else "Success" for pk in ids
    }
    state = whole_redis(redis)
    assert state["queue:v2"] == {f"{pk}:TEST" for pk in locked}
    assert not {"processing", "attempts"} & set(state)
    again = execution_queue().claim_batch("me", 1000).claim
    assert usecases.work(again) == Refreshed(succeeded=20, changed=20)
    assert set(Execution.objects.values_list("status", flat=True)) == {"Success"}
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


def test_a_row_that_is_locked_again_and_again_is_never_quarantined(redis: Redis, database: str) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        for _ in range(2 * refresh_settings().max_attempts):
            claim = execution_queue().claim_batch("me", 10).claim
            assert usecases.work(claim) == Refreshed(busy={execution.pk})
    assert (rows(Quarantine), marked(redis)) == ({}, {member(execution)})


def test_busy_is_only_who_could_be_refreshed_at_all(database: str) -> None:
    (busy, _), (held, _), (free, _), (gone, _) = made(1), made(1), made(1), made(1)
    Quarantine.objects.create(execution=held, reason="x", attempts=1)
    usecases.delete([gone.pk])
    ids = [busy.pk, held.pk, free.pk, gone.pk]
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = ANY(%s) FOR UPDATE", [[busy.pk, held.pk]])
        assert usecases.refresh(ids, wait=False) == Refreshed(succeeded=1, busy={busy.pk})
    assert usecases.refresh(ids, wait=False) == Refreshed(succeeded=2)


def test_who_refreshes_directly_waits_for_the_lock(database: str) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution FOR UPDATE")
        with in_background(lambda: usecases.refresh([execution.pk])) as refreshed:
            wait_until(lambda: waiting_for_locks() == 1, "the refresh waits for the row")
            assert status_of(execution) == "Running"
            other.rollback()
            assert refreshed() == Refreshed(succeeded=1, changed=1)
    assert status_of(execution) == "Success"


def fails_with(sqlstate: str, execution: Execution) -> None:
    """Whoever writes this row gets this error."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE = '{sqlstate}'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER fail BEFORE UPDATE ON execution FOR EACH ROW "
            f"WHEN (new.id = {execution.pk}) EXECUTE FUNCTION fail()"
        )


@pytest.mark.parametrize("sqlstate", ["53000", "53200", "53400", "54000", "23514"])
def test_an_error_of_one_row_fails_that_row_alone(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    assert usecases.refresh([good.pk, bad.pk]) == Refreshed(succeeded=1, changed=1, failed={bad.pk: "no more"})
    assert (status_of(good), status_of(bad)) == ("Success", "Running")


@pytest.mark.parametrize("sqlstate", ["08006", "53100", "53300", "57P01", "57P02", "57P03", "25006", "25P03"])
def test_an_error_of_the_server_fails_nobody(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    with pytest.raises(DatabaseAway, match=r"^PostgreSQL: no more$"):
        usecases.refresh([good.pk, bad.pk])
    assert (status_of(good), status_of(bad)) == ("Running", "Running")


def test_a_server_that_takes_no_writes_is_away(database: str, redis: Redis, told: list[Any]) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    raise_if_away()
    told.clear()
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    connection.close()
    with pytest.raises(DatabaseAway, match=r"^PostgreSQL: it takes no writes; it is a standby, or read-only$"):
        raise_if_away()
    assert connection.connection is None
    published: list[Any] = []
    assert usecases.dispatch(published.extend, 0) == 0
    assert (published, names(told), marked(redis)) == ([], ["database_away"], {member(execution)})
    assert redis.exists(execution_queue().keys.pause)
    assert not redis.exists(execution_queue().keys.wake)
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")
        cursor.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    connection.close()
    raise_if_away()


def test_what_fails_in_the_reporting_process_is_told(
    settings: Settings, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    fails_with("23514", bad)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert report([Report(good_task, "Success"), Report(bad_task, "Success")]).applied == 2
    assert (status_of(good), status_of(bad)) == ("Success", "Running")
    assert told == [("refreshed", {"outcome": Refreshed(succeeded=1, changed=1, failed={bad.pk: "no more"})})]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "Refresh outdate execution status done, 1 succeed, 1 failed"),
        ("WARNING", f"Execution {bad.pk} could not be refreshed: no more"),
    ]


# dispatch


def test_a_tick_claims_until_the_workers_have_enough(redis: Redis) -> None:
    execution_queue().add(f"{number}:A" for number in range(1, 40_001))
    published: list[int] = []
    total = usecases.dispatch(lambda claims: published.extend(map(len, claims)), 0)
    assert total == sum(published) == refresh_settings().share == 18_000
    assert redis.scard(execution_queue().keys.queue) == 40_000 - total
    assert published == [6000, 6000, 6000]
    assert "wake" not in whole_redis(redis), "who completes the last of them must be able to send a tick"


def test_a_tick_that_finds_only_hot_ones_tells_how_long_they_rest(
    redis: Redis, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = execution_queue()
    monkeypatch.setattr(queue, "_rest_us", 60_000_000)
    published: list[Any] = []
    for count in (1, 0, 0):
        queue.add(["1:A"])
        assert usecases.dispatch(published.extend, 0) == count
        redis.hset(queue.keys.heat, "1:A", f"20:{queue.stats().now}")
    assert names(told) == ["claimed"] + ["woken"] * 5
    delays = [values["delay"] for name, values in told if name == "woken"]
    assert [delays[n] for n in (0, 1, 3)] == [MOMENT] * 3
    assert all(50 < delays[n] <= 60 for n in (2, 4))
    assert marked(redis) == {"1:A"}
    queue.add(["2:B"])
    assert usecases.dispatch(published.extend, 0) == 1
    assert [claim.members for claim in published] == [("1:A",), ("2:B",)]
    assert names(told[6:]) == ["claimed", "woken", "woken"]


@pytest.mark.parametrize("rest", [0.01, 0.06, 0.08, 0.1, 0.12, 0.14, 0.2])
def test_the_look_at_the_end_of_a_rest_is_not_that_of_the_moment_over_again(
    rest: float, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look for both would find that nobody marked, and those that rest would wait for recovery."""
    queue = execution_queue()
    execution_queue().add(["1:A"])
    real = queue.claim_batch
    monkeypatch.setattr(queue, "claim_batch", lambda *words: replace(real(*words), wait=rest))
    usecases.dispatch(lambda claims: None, 0)
    first, second = (values["delay"] for name, values in told if name == "woken")
    assert first == MOMENT
    assert rest <= second <= rest + 0.1
    assert abs(first - second) > 2 * CLOSE_SECONDS - 0.001


def test_the_wake_of_a_long_queue_is_forgotten_before_its_last_chunks_are_handed_out(
    settings: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever completes one of them must be able to wake the next tick; who completes one of the others must not.
    And each claim is dealt out in order, so that a chunk's executions are neighbours."""
    settings.REFRESH_CHUNK = 100
    queue = execution_queue()
    monkeypatch.setattr(queue, "conf", refresh_settings())
    for node in "abcd":
        queue.sign_of_life(node)
    queue.add(f"{number}:A" for number in range(10_000, 13_000))
    published: list[list[Any]] = []
    wakes: list[bool] = []

    def publish(claims: Any) -> None:
        published.append(list(claims))
        wakes.append(bool(redis.exists(queue.keys.wake)))

    assert usecases.dispatch(publish, 0) == 1500
    assert [list(map(len, claims)) for claims in published] == [[100] * 6, [100] * 6, [100] * 3]
    assert wakes == [True, True, False]
    for claims in published:
        ids = [one for claim in claims for one in claim.ids]
        assert ids == sorted(ids)


@pytest.mark.parametrize(("at_once", "total"), [(10, SLOTS), (30, 30 * SLOTS)])
def test_messages_that_nobody_takes_do_not_pile_up_however_often_the_tick_comes(
    at_once: int, total: int, redis: Redis
) -> None:
    queue = execution_queue()
    published: list[Any] = []
    for turn in range(200):
        queue.add(f"{turn * at_once + number}:A" for number in range(1, at_once + 1))
        usecases.dispatch(published.extend, len(published))
        assert len(published) <= SLOTS
    assert (len(published), sum(map(len, published))) == (SLOTS, total)
    state = whole_redis(redis)
    flying = {text for claim in published for text in claim.members}
    assert {text.rsplit(":", 2)[0] for text in state["processing"]} == flying
    assert state["queue:v2"] == {f"{number}:A" for number in range(1, 200 * at_once + 1)} - flying
    assert "attempts" not in state


@pytest.mark.parametrize("waiting", [32, 33, 1000])
def test_with_messages_enough_nothing_is_claimed(waiting: int, redis: Redis, told: list[Any]) -> None:
    execution_queue().add(["1:A", "2:A"])
    published: list[Any] = []
    assert usecases.dispatch(published.extend, waiting) == 0
    assert (published, told) == ([], [])
    assert whole_redis(redis) == {"queue:v2": {"1:A", "2:A"}}


def test_what_is_claimed_beyond_the_last_slot_goes_back_uncounted(redis: Redis, told: list[Any]) -> None:
    execution_queue().add(f"{number}:A" for number in range(1, 11))
    redis.hset(execution_queue().keys.attempts, "1:A", 2)
    published: list[Any] = []
    assert usecases.dispatch(published.extend, 29) == 3
    assert [len(claim) for claim in published] == [1, 1, 1]
    assert told == [("claimed", {"count": 3}), ("woken", {"delay": MOMENT})]
    flying = {text for claim in published for text in claim.members}
    state = whole_redis(redis)
    assert state["queue:v2"] == {f"{number}:A" for number in range(1, 11)} - flying
    assert {text.rsplit(":", 2)[0] for text in state["processing"]} == flying
    assert state["attempts"] == {"1:A": "2"}


def test_every_live_node_makes_slots(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_DEPTH = 20
    queue = execution_queue()
    for node in (this_node.name, "a", "b"):
        queue.sign_of_life(node)
    queue.add(f"{number}:A" for number in range(1, SMALL + 1))
    published: list[Any] = []
    assert usecases.dispatch(published.extend, 50) == 10
    assert len(published) == 10


def test_a_tick_that_found_no_slot_does_not_keep_others_from_asking_for_the_next(redis: Redis) -> None:
    """The tick that was asked for has come; who empties the broker must be able to ask for another."""
    execution_queue().add(["1:A"])
    assert redis.exists(execution_queue().keys.wake)
    usecases.dispatch(lambda claims: None, SLOTS)
    assert not redis.exists(execution_queue().keys.wake)


@pytest.mark.parametrize("way", ["silent", "waits"])
def test_work_that_nobody_takes_quarantines_nobody(
    way: str, redis: Redis, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = execution_queue()
    everybody = {member(one) for one in create_many([NewExecution("TEST", tasks=[NewTask()])] * 10)}
    queue.add(everybody)
    if way == "waits":
        monkeypatch.setattr(queue, "conf", replace(queue.conf, node_ttl=0.0))
    for _ in range(3 * refresh_settings().max_attempts):
        assert usecases.dispatch(lambda claims: None, 0) == 10
        if way == "silent":
            redis.delete(queue.keys.nodes)
        assert usecases.recover(idle=way == "waits") == 10
        assert marked(redis) == everybody
        assert not {"processing", "attempts"} & set(whole_redis(redis))
    assert rows(Quarantine) == {}
    assert "quarantined" not in names(told)


def test_a_claim_that_cannot_be_published_goes_back_uncounted(redis: Redis) -> None:
    execution_queue().add(["1:A", "2:A"])

    def refuse(claims: Any) -> None:
        raise ConnectionError("no broker")

    with pytest.raises(ConnectionError, match="no broker"):
        usecases.dispatch(refuse, 0)
    assert {k: v for k, v in whole_redis(redis).items() if k in ("queue:v2", "processing", "attempts")} == {
        "queue:v2": {"1:A", "2:A"}
    }


def test_a_claim_that_can_be_neither_published_nor_given_back_ends_the_life_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Redis went away in between: the claim stays under the old name, whose silence will be noticed."""
    execution_queue().add(["1:A"])
    before = this_node.name

    def refuse(*_: Any, **__: Any) -> None:
        raise QueueUnavailable

    monkeypatch.setattr(ExecutionQueue, "mark_failed", refuse)
    with pytest.raises((QueueUnavailable, ConnectionError)):
        usecases.dispatch(refuse, 0)
    assert this_node.name != before


def test_members_that_cannot_be_read_do_not_hide_those_behind_them(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = execution_queue()
    queue.add(["1:A"])
    batches = iter([queue.claim_batch("me", 0), queue.claim_batch("me", 0)])
    redis.sadd(queue.keys.queue, b"x")
    real = queue.claim_batch

    def garbage_first(node: str, count: int) -> Any:
        empty = next(batches, None)
        return replace(empty, unreadable=(b"x",), more=True) if empty else real(node, count)

    monkeypatch.setattr(queue, "claim_batch", garbage_first)
    published: list[Any] = []
    assert usecases.dispatch(published.extend, 0) == 1


def test_with_redis_away_dispatch_and_work_say_so_and_the_node_begins_a_new_life(
    redis_away: None,
) -> None:
    from executions.queue import Claim

    for verb in (
        lambda: usecases.dispatch(lambda claims: None, 0),
        lambda: usecases.work(Claim("n1", "7", ("1:A",))),
    ):
        before = this_node.name
        with pytest.raises(QueueUnavailable):
            verb()
        assert this_node.name != before


# recover


def test_recovery_gives_back_what_a_dead_node_claimed_and_asks_for_a_tick(
    redis: Redis, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    execution_queue().claim_batch("dead", 10)
    redis.zrem(execution_queue().keys.nodes, "dead")
    told.clear()
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        assert usecases.recover() == 1
        assert usecases.recover() == 0
    assert names(told) == ["recovered", "woken", "woken"]
    assert [one.getMessage() for one in caplog.records] == ["Recovered 1 stale executions from crashed instances"]
    assert marked(redis) == {member(execution)}


def test_recovery_asks_though_a_tick_seems_to_be_on_its_way(redis: Redis, told: list[Any]) -> None:
    """It may have died with its worker."""
    queue = execution_queue()
    queue.add(["1:A"])
    queue.claim_batch("dead", 10)
    redis.delete(queue.keys.nodes)
    seen = []
    for wake in ("1", "1", None):
        if wake:
            redis.set(queue.keys.wake, wake)
        told.clear()
        seen.append((usecases.recover(), names(told)))
    assert seen == [(1, ["recovered", "woken"]), (0, ["woken"]), (0, ["woken"])]
    assert marked(redis) == {"1:A"}


@pytest.mark.parametrize("name", ["claim", "scan", "lock", "hash", "upstream"])
def test_to_rouse_is_for_the_strategy_that_wakes(name: str, settings: Settings, told: list[Any]) -> None:
    settings.REFRESH_STRATEGY = name
    execution_queue().add(["1:A"])
    execution_queue().forget_wake()
    assert usecases.rouse() is (name == "claim")
    assert told == ([("woken", {})] if name == "claim" else [])


def test_who_kills_its_process_every_time_is_quarantined_by_recovery(redis: Redis) -> None:
    _, tasks = made(1)
    report([Report(tasks[0], "Success")])
    for _ in range(refresh_settings().max_attempts):
        assert not Quarantine.objects.exists()
        claim = execution_queue().claim_batch("alive", 10).claim
        assert len(execution_queue().take_over(claim, "dead")) == 1
        redis.zrem(execution_queue().keys.nodes, "dead")
        assert usecases.recover() == 1
    assert Quarantine.objects.get().reason == "whoever began to refresh it died or never ended"
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


# reconcile


def drifted(minutes: int = 60) -> Execution:
    """An execution whose only task ended so long ago, and nobody marked it."""
    execution, _ = made(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE task SET status = 'Success', status_code = 3, "
            "update_time = now() - %s, end_time = now() - %s WHERE execution_id = %s",
            [timedelta(minutes=minutes)] * 2 + [execution.pk],
        )
    return execution


def watermark() -> datetime:
    return Watermark.objects.get().settled_before or AGES_AGO


def test_reconcile_finds_what_redis_forgot_and_marks_it(redis: Redis, told: list[Any]) -> None:
    lost, healthy = drifted(), made(1)[0]
    outcome = usecases.reconcile()
    assert (outcome.looked_at, outcome.drifted, outcome.marked, outcome.waiting) == (2, 1, 1, 0)
    drift = outcome.examples[0]
    assert (drift.execution_id, drift.vendor_type, drift.stored, drift.true) == (
        lost.pk,
        "TEST",
        "Running",
        "Success",
    )
    assert marked(redis) == {member(lost)}
    assert names(told) == ["woken", "reconciled"]
    assert status_of(healthy) == "Running"


def test_a_drift_of_the_end_alone_is_found(redis: Redis) -> None:
    execution = drifted()
    usecases.refresh([execution.pk])
    assert usecases.reconcile(full=True).drifted == 0
    Execution.objects.update(end_time=AGES_AGO)
    assert usecases.reconcile(full=True).marked == 1


def test_a_drift_stays_in_sight_until_it_is_healed_and_then_the_watermark_moves_on(
    redis: Redis,
) -> None:
    execution = drifted(minutes=60)
    changed = Task.objects.get().update_time
    for _ in range(3):
        redis.flushall()
        assert usecases.reconcile().marked == 1
        assert watermark() == changed
    usecases.refresh([execution.pk])
    assert usecases.reconcile().marked == 0
    assert watermark() > changed
    assert usecases.reconcile().looked_at == 0


def test_a_drift_that_waits_or_is_in_flight_is_not_marked_again(redis: Redis) -> None:
    waits, flies, lost = drifted(), drifted(), drifted()
    execution_queue().add([member(flies)])
    execution_queue().claim_batch("me", 10)
    execution_queue().add([member(waits)])
    outcome = usecases.reconcile()
    assert (outcome.drifted, outcome.waiting, outcome.marked) == (3, 2, 1)
    assert marked(redis) == {member(waits), member(lost)}
    assert watermark() == outcome.oldest


def test_a_reconcile_of_the_schedule_is_postponed_while_the_queue_is_long(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("executions.usecases.reconciling.BUSY", 3)
    drifted()
    execution_queue().add(f"{number}:A" for number in range(101, 105))
    before = whole_redis(redis)
    with caplog.at_level(logging.INFO, "harbor_refresh"):
        outcome = usecases.reconcile(yielding=True)
    assert outcome == Reconciled(postponed=True)
    assert told == [("reconciled", {"outcome": outcome})]
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "Reconcile postponed: the queue is long, and its workers need the database")
    ]
    assert (whole_redis(redis), rows(Watermark)) == (before, {})
    assert usecases.reconcile().marked == 1
    redis.flushall()
    assert usecases.reconcile(yielding=True).marked == 1


def test_what_changed_within_the_grace_is_left_to_the_queue(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_RECONCILE_GRACE_SECONDS = 3600
    drifted(minutes=30)
    late = drifted(minutes=90)
    outcome = usecases.reconcile()
    assert [one.execution_id for one in outcome.examples] == [late.pk]
    assert marked(redis) == {member(late)}


def test_pages_are_gone_through_to_the_end_without_a_repeat(monkeypatch: pytest.MonkeyPatch, redis: Redis) -> None:
    monkeypatch.setattr("executions.usecases.reconciling.PAGE", 3)
    lost = [drifted() for _ in range(10)]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET update_time = '2020-01-01Z' WHERE id % 2 = 0")
    seen: list[int] = []
    outcome = usecases.reconcile(progress=seen.append)
    assert (outcome.looked_at, outcome.marked) == (10, 10)
    assert seen == [3, 6, 9, 10]
    assert marked(redis) == {member(one) for one in lost}
    assert usecases.reconcile(full=True).looked_at == 10


def test_a_transaction_that_is_still_open_holds_the_watermark_back(database: str) -> None:
    _, tasks = made(1)
    with psycopg.connect(servers.postgres.url_for(database)) as slow:
        began = slow.execute("SELECT now()").fetchone()
        assert began is not None
        slow.execute(
            "UPDATE task SET status = 'Success', status_code = 3, update_time = now(), "
            "end_time = now() WHERE id = %s",
            tasks,
        )
        assert usecases.reconcile().drifted == 0
        assert watermark() == began[0]
        slow.commit()
    assert usecases.reconcile().marked == 1


def test_an_old_reader_holds_the_watermark_back_and_not_the_look(database: str, redis: Redis) -> None:
    usecases.reconcile()
    with psycopg.connect(servers.postgres.url_for(database)) as reader:
        reader.read_only = True
        began = reader.execute("SELECT now()").fetchone()
        assert began is not None
        for _ in range(3):
            execution, tasks = made(1)
            report([Report(tasks[0], "Success")])
            redis.flushall()
            outcome = usecases.reconcile()
            assert [one.execution_id for one in outcome.examples] == [execution.pk]
            assert (outcome.drifted, outcome.marked) == (1, 1)
            assert watermark() == began[0]
            usecases.refresh([execution.pk])
            redis.flushall()
    assert usecases.reconcile().drifted == 0
    assert watermark() > began[0]


def test_a_full_reconcile_looks_at_everything_and_leaves_the_watermark(redis: Redis) -> None:
    usecases.reconcile()
    before = watermark()
    execution = drifted(minutes=60 * 24 * 365)
    assert usecases.reconcile().looked_at == 0
    before = watermark()
    outcome = usecases.reconcile(full=True)
    assert [one.execution_id for one in outcome.examples] == [execution.pk]
    assert marked(redis) == {member(execution)}
    assert outcome.oldest is not None
    assert watermark() == outcome.oldest < before
    usecases.refresh([execution.pk])
    usecases.reconcile()
    before = watermark()
    usecases.reconcile(full=True)
    assert watermark() == before


def test_a_dry_run_tells_and_changes_nothing(redis: Redis) -> None:
    drifted()
    held = drifted()
    Quarantine.objects.create(execution=held, reason="x", attempts=1, at=AGES_AGO)
    before = (rows(Quarantine), rows(Watermark))
    outcome = usecases.reconcile(dry_run=True)
    assert (outcome.drifted, outcome.marked, outcome.paroled) == (1, 0, 0)
    assert (rows(Quarantine), rows(Watermark)) == before
    assert whole_redis(redis) == {}


def test_a_second_reconcile_says_that_one_is_running_and_touches_nothing(
    database: str, redis: Redis, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    drifted()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        with caplog.at_level(logging.INFO, "harbor_refresh"):
            outcome = usecases.reconcile()
        assert outcome == Reconciled(already_running=True)
        assert (whole_redis(redis), rows(Watermark)) == ({}, {})
        assert told == [("reconciled", {"outcome": outcome})]
        assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
            ("INFO", "Reconcile is running already, left alone")
        ]
    wait_until(lambda: not usecases.reconcile().already_running, "the other has gone")


def test_reconcile_gives_its_lock_back_even_after_an_error(redis_away: None, database: str) -> None:
    drifted()
    with pytest.raises(QueueUnavailable):
        usecases.reconcile()
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        free = other.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        assert free == (True,)


def test_with_redis_away_reconcile_says_so_and_the_watermark_does_not_move(redis: Redis, redis_away: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("executions.strategies.claim.execution_queue", execution_queue)
        usecases.reconcile()
    before = rows(Watermark)
    _, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with pytest.raises(QueueUnavailable, match="Redis"):
        usecases.reconcile()
    assert rows(Watermark) == before


def test_what_is_in_quarantine_is_not_marked_again_and_again(redis: Redis) -> None:
    execution = drifted()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    outcome = usecases.reconcile()
    assert (outcome.drifted, outcome.paroled) == (0, 0)
    assert marked(redis) == set()


def test_whose_time_is_up_is_let_out_and_marked_for_another_try(
    redis: Redis, settings: Settings, told: list[Any]
) -> None:
    settings.REFRESH_QUARANTINE_SECONDS = 60
    old, fresh = drifted(), drifted()
    now = datetime.now(UTC)
    Quarantine.objects.create(execution=old, reason="x", attempts=1, at=now - timedelta(seconds=90))
    Quarantine.objects.create(execution=fresh, reason="x", attempts=1, at=now - timedelta(seconds=30))
    assert usecases.reconcile().paroled == 1
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [fresh.pk]
    assert marked(redis) == {member(old)}
    assert ("paroled", {"execution_ids": [old.pk]}) in told


@pytest.mark.parametrize("way", ["parole", "release"])
def test_who_was_let_out_and_whose_mark_redis_forgot_is_found_by_reconcile(
    way: str, redis: Redis, settings: Settings
) -> None:
    """The watermark passed by while it was in quarantine."""
    execution = drifted(minutes=60)
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    usecases.reconcile()
    if way == "release":
        assert usecases.release([execution.pk]) == [execution.pk]
    else:
        Quarantine.objects.update(at=AGES_AGO)
        assert parole() == [execution.pk]
    redis.flushall()
    usecases.reconcile()
    assert marked(redis) == {member(execution)}


def test_who_is_let_out_while_a_reconcile_runs_is_found_by_the_next(redis: Redis) -> None:
    execution = drifted()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    usecases.reconcile()
    made(1)
    released: list[int] = []
    usecases.reconcile(progress=lambda _: released.extend(usecases.release([execution.pk])))
    assert released == [execution.pk]
    redis.flushall()
    usecases.reconcile()
    assert marked(redis) == {member(execution)}


def test_releasing_tells_who_was_in_and_marks_them(redis: Redis) -> None:
    execution, other = drifted(), drifted()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    assert usecases.release([execution.pk, other.pk, 10**9]) == [execution.pk]
    assert rows(Quarantine) == {}
    assert marked(redis) == {member(execution)}
    assert usecases.release([]) == []


def test_the_refresh_reads_its_locks_and_its_tasks_in_two_statements() -> None:
    """READ COMMITTED is what makes the second see what the first waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone()[0] == "read committed"
    assert "FOR NO KEY UPDATE" in statement("lock_executions")
