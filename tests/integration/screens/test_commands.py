"""The commands of operators: tables for people, JSON for programs, exit codes for both."""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.executions.database import HELD
from harbor_refresh.executions.errors import LeaseLost
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.management.output import printable
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.tasks.conf import pacing
from harbor_refresh.tasks.models import Watermark
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests import servers
from tests.integration.command_output import data, failing, manage, misuse, said
from tests.integration.concurrency import statement_held_open
from tests.integration.sample_executions import with_tasks

pytestmark = pytest.mark.usefixtures("database", "queue")

NOBODY = "redis://127.0.0.1:1/0"


def made(vendor: str = "SCAN_ALL", status: str = "Pending") -> Execution:
    """An execution of one task, refreshed; nothing is on the queue."""
    execution = with_tasks(status, vendor=vendor)
    execution_queue()._redis.flushall()
    return execution


def made_wrong() -> Execution:
    execution = made()
    Execution.objects.filter(pk=execution.pk).update(status="Pending")
    return execution


def on_the_queue(redis: Redis) -> list[str]:
    found: set[bytes] = redis.smembers("cache:execution:refresh:queue:v2")  # type: ignore[assignment]
    return sorted(member.decode() for member in found)


def test_stats_shows_the_backlog_the_work_in_flight_and_the_live_nodes(queue: ExecutionQueue) -> None:
    queue.mark([f"{number}:SCAN_ALL" for number in range(1, 1_235)])
    queue.heartbeat("node-1")
    queue.claim("node-1", 3)
    held = made_held(queue)

    found = data("harbor", "status")
    counts = ("backlog", "in_flight", "failed_before", "quarantined", "jobs_in_progress", "dead_letters")
    assert [found[name] for name in counts] == [1_231, 3, 0, 1, 0, 0]
    assert [node["name"] for node in found["nodes"]] == ["node-1"]
    assert (found["strategy"], found["absent"], found["paused"]) == ("claim", {}, [])
    assert [one["id"] for one in found["findings"]] == ["beat.alive", "status.quarantine"]
    lines = said("harbor", "status").splitlines()
    assert lines[:10] == [
        "                count",
        "backlog         1,231  executions wait to be claimed",
        "in flight           3  claimed and not finished",
        "failed before       0  of these two, failed at least once",
        "live nodes          1  node-1",
        "queue messages      0  none waits in a harbor_refresh queue",
        "quarantined         1  set aside: harbor quarantine",
        "running jobs        0  waiting ones: harbor status --jobs",
        "dead letters        0  notifications that were given up",
        "",
    ]
    assert [line.split("  ")[0] for line in lines[10:14]] == [
        "oldest",
        "last tick",
        "last reconcile",
        "beat",
    ]
    assert lines[14].startswith("error    beat.alive  Beat has never sent anything.")
    assert Quarantine.objects.get().execution_id == held


def made_held(queue: ExecutionQueue) -> int:
    """An execution in quarantine, made without a touch of the queue."""
    execution = create(NewExecution("RETENTION"))
    quarantine([execution.pk], 5, {execution.pk: "row\x1b[31m is bad"})
    return execution.pk


def test_stats_says_when_claiming_pauses_and_when_the_queue_is_not_used(
    queue: ExecutionQueue, settings: Any
) -> None:
    queue.pause()
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0

    shown = said("harbor", "status")

    assert "so no worker claims for" in shown
    assert "The interval is 0 or less: the reporting process refreshes, and the queue is not used.\n" in shown


def test_stats_goes_on_while_redis_is_down_and_fails() -> None:
    done = manage("harbor", "status", REDIS_URL=NOBODY)

    assert done.returncode == 1
    assert done.stderr.startswith("Failed: Redis: ConnectionError: ")
    assert "backlog" not in done.stdout
    assert "quarantined   " in done.stdout
    assert "error    redis.reachable  Redis is down, or does not answer in time." in done.stdout


def test_quarantine_lists_executions_with_their_reasons(queue: ExecutionQueue) -> None:
    assert said("harbor", "quarantine") == "No execution is in quarantine."
    assert data("harbor", "quarantine") == {"quarantined": []}

    held = made_held(queue)

    row = Quarantine.objects.get()
    assert data("harbor", "quarantine") == {
        "quarantined": [
            {
                "execution_id": held,
                "vendor": "RETENTION",
                "status": "Running",
                "attempts": 5,
                "at": row.at.isoformat(),
                "reason": "row\x1b[31m is bad",
            }
        ]
    }
    assert said("harbor", "quarantine").splitlines() == [
        "execution  vendor     status   attempts  since                reason",
        f"{held:<9}  RETENTION  Running         5  {row.at:%Y-%m-%d %H:%M:%S}  row\\x1b[31m is bad",
    ]


def test_quarantine_releases_by_id_and_names_ids_that_were_not_in_quarantine(
    queue: ExecutionQueue, redis: Redis
) -> None:
    held, kept = made_held(queue), made_held(queue)

    printed, failure = failing("harbor", "quarantine", "--release", held, 99_999)

    assert printed == "Released 1 execution for another try.\n"
    assert failure == "not in quarantine: 99999"
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [kept]
    assert on_the_queue(redis) == [f"{held}:RETENTION"]


def test_quarantine_releases_all_executions(queue: ExecutionQueue, redis: Redis) -> None:
    held = sorted([made_held(queue), made_held(queue)])

    assert data("harbor", "quarantine", "--release-all") == {
        "released": held,
        "not_in_quarantine": [],
    }
    assert not Quarantine.objects.exists()
    assert on_the_queue(redis) == [f"{pk}:RETENTION" for pk in held]
    assert said("harbor", "quarantine", "--release-all") == ("Released 0 executions for another try.")


def test_reconcile_full_finds_drift_and_marks_it(redis: Redis) -> None:
    wrong, _ = made_wrong(), made()
    changed_at = Task.objects.get(execution=wrong).update_time

    assert data("harbor", "repair", "drift", "--full") == {
        "full": True,
        "dry_run": False,
        "rescan_reason": None,
        "looked_at": 2,
        "drifted": 1,
        "waiting": 0,
        "marked": 1,
        "released_from_quarantine": 0,
        "first_drifts": [
            {
                "execution_id": wrong.pk,
                "vendor": "SCAN_ALL",
                "stored": "Pending",
                "true": "Running",
                "changed_at": changed_at.isoformat(),
            }
        ],
    }
    assert on_the_queue(redis) == [f"{wrong.pk}:SCAN_ALL"]
    assert said("harbor", "repair", "drift", "--full").splitlines() == [
        "Looked at 2 executions: 1 drifted, 1 of them waiting already, 0 marked, 0 released from quarantine.",
        "execution  vendor    stored   true",
        f"{wrong.pk:<9}  SCAN_ALL  Pending  Running",
    ]


def test_reconcile_reads_recent_changes(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "RECONCILE_GRACE_SECONDS", 0)
    wrong = made_wrong()

    assert said("harbor", "repair", "drift").splitlines()[0] == (
        "Looked at 1 changed task: 1 drifted, 0 of them waiting already, 1 marked, 0 released from quarantine."
    )
    refresh([wrong.pk])
    assert data("harbor", "repair", "drift")["drifted"] == 0


def test_reconcile_dry_run_marks_nothing(redis: Redis) -> None:
    wrong = made_wrong()
    done = made("RETENTION", "Success")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE execution SET end_time = now() WHERE id = %s", [done.pk])

    assert said("harbor", "repair", "drift", "--full", "--dry-run").splitlines() == [
        "Looked at 2 executions: 2 drifted, 0 of them waiting already, dry run: nothing marked, "
        "0 released from quarantine.",
        "execution  vendor     stored   true",
        f"{wrong.pk:<9}  SCAN_ALL   Pending  Running",
        f"{done.pk:<9}  RETENTION  Success  Success, with another end",
    ]
    assert redis.keys() == []


def test_reconcile_says_when_another_pass_took_its_lease(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "extend", Mock(side_effect=LeaseLost))

    assert failing("harbor", "repair", "drift") == (
        "",
        "this reconcile stood still for so long that another took over, so it ended early.",
    )


def test_reconcile_says_why_it_looked_at_everything(redis: Redis) -> None:
    made()
    Watermark.objects.create(settled_before=datetime(2020, 1, 1, tzinfo=UTC))

    assert said("harbor", "repair", "drift").splitlines() == [
        "Looked at 1 execution: 0 drifted, 0 of them waiting already, 0 marked, 0 released from quarantine.",
        "The watermark could not be trusted: it does not say which server wrote it.",
    ]


def test_a_command_without_redis_ends_with_1_and_one_line() -> None:
    done = manage("harbor", "marks", "export", REDIS_URL=NOBODY)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Failed: Redis: ConnectionError: ")
    assert done.stderr.endswith(
        "Redis is down; nothing is lost, reconcile finds what was not marked. "
        "`manage.py harbor check` says what to do.\n"
    )


def test_a_command_without_a_database_ends_with_1_and_one_line() -> None:
    done = manage("harbor", "repair", "drift", DATABASE_URL="postgresql://postgres@127.0.0.1:1/none")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Failed: PostgreSQL: connection failed")
    assert done.stderr.endswith("The database is down. `manage.py harbor check` says what to do.\n")


def test_a_row_that_stays_locked_fails_a_command_in_one_line(queue: ExecutionQueue) -> None:
    """As those of an execution with a million tasks that is being deleted."""
    held = made_held(queue)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    with statement_held_open(f"SELECT FROM execution_quarantine WHERE execution_id = {held} FOR UPDATE"):
        printed, failure = failing("harbor", "quarantine", "--release", held)
    assert (printed, failure) == ("", f"PostgreSQL: {HELD}")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["harbor"], "the following arguments are required: {status,why,"),
        (["harbor", "stop"], "Misused: choose executions by an ID or an option, or all of them by --all"),
        (["harbor", "list", "--attribute", "a"], "'a' is no attribute; takes PATH=TEXT"),
        (["harbor", "list", "--limit", "9223372036854775807"], "takes a whole number from 1 to 1,000,000"),
        (["harbor", "list", "--status", "Succeed"], "invalid choice: 'Succeed'"),
        (["harbor", "stop", "x"], "argument ID: got 'x', takes a whole number from 1"),
        (["harbor", "stop", "9223372036854775808"], "got '9223372036854775808', takes a whole number from 1"),
        (["harbor", "stop", "9" * 5000], f"argument ID: got '{'9' * 40}', takes a whole number from 1 to"),
        (["harbor", "why", "0"], "argument ID: got '0', takes a whole number from 1"),
        (["harbor", "why"], "one of the arguments ID --task is required"),
        (["harbor", "why", "1", "--task", "2"], "argument --task: not allowed with argument ID"),
        (["harbor", "repair"], "the following arguments are required: {drift,refresh}"),
        (["harbor", "repair", "all"], "argument {drift,refresh}: invalid choice: 'all'"),
        (["harbor", "repair", "drift", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_a_misused_command_ends_with_2(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line in misuse(capsys, *words)


def test_a_word_that_is_no_text_is_misuse() -> None:
    done = manage("harbor", "list", "--vendor", "\udcff")

    assert (done.returncode, done.stdout) == (2, "")
    assert "vendor_type takes at most 64 characters, and got" in done.stderr


def test_a_queue_whose_name_is_no_text_was_not_paused() -> None:
    done = manage("harbor", "unpause", "\udcff")

    assert (done.returncode, done.stdout) == (0, "\\udcff was not paused.\n")


def test_control_characters_are_printed_escaped() -> None:
    assert printable("a\x1b[2J\nü") == "a\\x1b[2J\\nü"


@pytest.mark.parametrize("line", ["list", "token runner", "pause", "sweep --dry-run", "stop 1"])
def test_a_command_before_migrate_says_what_to_type(line: str) -> None:
    done = manage("harbor", *line.split(), DATABASE_URL=servers.postgres.url_for("postgres"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Failed: PostgreSQL: relation ")
    assert done.stderr.endswith("; type: python manage.py migrate.\n")


def test_a_start_before_migrate_says_what_to_type() -> None:
    code = "from harbor_refresh import start; start('NIGHTLY', jobs=[])"
    done = manage("shell", "--command", code, DATABASE_URL=servers.postgres.url_for("postgres"))
    assert done.returncode == 1
    assert done.stderr.endswith("; type: python manage.py migrate\n")
