"""Messages of another database, whose jobs may have the ids of ours: a worker leaves them alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import ProgrammingError, connection

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news.counters import kept
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle import admission
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import ReceivedMessage, Verdict
from harbor_refresh.tasks.jobs.repair.job_recovery import recover_jobs
from harbor_refresh.tasks.jobs.runtime import celery_events
from harbor_refresh.tasks.models import RedisMemory
from tests import servers
from tests.integration.command_output import data
from tests.integration.jobs.sample_jobs import (
    DAY,
    TOO_LONG,
    Outbox,
    aged,
    alive,
    database_port,
    known,
    record,
    recorded,
    stands,
    write,
)
from tests.integration.redis_state import Clock, Redis, whole_redis

pytestmark = pytest.mark.usefixtures("database", "nodes")

#: The name of a database that is not ours.
OTHER = "00000000-0000-0000-0000-000000000000"
RUNS: dict[str, Any] = {"node": "n-7-1", "acknowledged": (0, "Running")}
WAITS: dict[str, Any] = {"status": "Scheduled", "revision": 1, "ago": -60, "acknowledged": (1, "Scheduled")}
OVER: dict[str, Any] = {"status": "Success", "node": "n-7-1"}


@pytest.fixture(autouse=True)
def _a_process_that_knows_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_database, "_known", "")
    monkeypatch.setattr(celery_events, "host_of", lambda _: "n")
    monkeypatch.setattr(kept, "SECONDS", 3_600.0)  # else a test that stands still finds them written


@pytest.fixture
def message(outbox: Outbox) -> Message:
    """The message of the job j. A copy of the database has the same job and task, and another name."""
    recorded("j")
    (message,) = outbox.messages
    return message


def received(message: Message, database: str) -> ReceivedMessage:
    return ReceivedMessage(message.job, message.task_id, 9, 0, database)


def header_of(message: Message, database: str) -> dict[str, Any]:
    header: dict[str, Any] = message_header.of(message)[message_header.NAME]
    return {**header, "revision": 9, "database": database}


def is_begun(message: Message, database: str) -> None:
    assert begin(received(message, database), "n-7-1").verdict == Verdict.FOREIGN


def is_unusable(message: Message, database: str) -> None:
    celery_events.on_unusable({"id": message.job, message_header.NAME: header_of(message, database)}, "rubbish")


def is_unknown(message: Message, database: str) -> None:
    headers = {message_header.NAME: header_of(message, database)}
    celery_events.on_unknown(SimpleNamespace(headers=headers), name="a.job", id=message.job)


def is_revoked(message: Message, database: str, *, terminated: bool = False) -> None:
    request = type("Request", (dict,), {"id": message.job})({message_header.NAME: header_of(message, database)})
    celery_events.on_revoked(request, terminated=terminated, expired=not terminated)


def is_terminated(message: Message, database: str) -> None:
    is_revoked(message, database, terminated=True)


def takes_too_long(message: Message, database: str) -> None:
    fields = {"id": message.job, message_header.NAME: header_of(message, database)}
    celery_events.on_hard_limit(fields, "TimeLimitExceeded")


WAYS: list[Callable[[Message, str], None]] = [
    is_begun,
    is_unusable,
    is_unknown,
    is_revoked,
    is_terminated,
    takes_too_long,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("before", [None, RUNS, WAITS, OVER], ids=["no record", "runs", "waits", "is over"])
def test_a_message_of_another_database_changes_nothing_and_is_told(
    before: dict[str, Any] | None,
    way: Callable[[Message, str], None],
    message: Message,
    redis: Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if before:
        write(redis, record("j", **before))
    there = known(redis), whole_redis(redis, presence=True, observed=True)
    way(message, OTHER)
    assert (known(redis), whole_redis(redis, presence=True, observed=True)) == there
    assert "Left alone job j: its message was sent for another database" in caplog.messages
    assert kept._amounts == {("job_messages_refused", ""): 1}


@pytest.mark.parametrize("way", WAYS[1:], ids=lambda way: way.__name__)
def test_the_same_message_of_our_database_does_its_work(
    way: Callable[[Message, str], None], message: Message, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    way_ends_a_run = way in {is_terminated, takes_too_long}
    write(redis, record("j", **(RUNS if way_ends_a_run else WAITS)))
    way(message, message.database)
    assert known(redis)["records"]["j"].is_final
    assert caplog.messages == (["Dropped the message of job 'j': rubbish"] if way is is_unusable else [])


def test_a_message_of_a_release_that_named_no_database_runs(message: Message, redis: Redis) -> None:
    header = message_header.of(message)[message_header.NAME]
    del header["database"]
    assert begin(message_header.received("j", header), "n").verdict == Verdict.GO
    assert known(redis)["records"] == {"j": record("j", node="n")}


def test_no_name_is_read_for_a_message_with_the_known_name(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_database.is_ours(message.database)
    monkeypatch.setattr(own_database, "name", lambda: pytest.fail("it was read"))
    assert own_database.is_ours(message.database)
    assert own_database.is_ours("")


def test_a_name_that_was_given_meanwhile_is_noticed(message: Message, redis: Redis) -> None:
    """The process knows the old name, and a message with that name comes; then one with the new name."""
    write(redis, record("j", **WAITS))
    own_database.name()
    RedisMemory.objects.update(database=OTHER)
    there = known(redis)
    assert begin(received(message, message.database), "n").verdict == Verdict.FOREIGN
    assert known(redis) == there
    assert begin(received(message, OTHER), "n").verdict == Verdict.GO


def test_while_the_database_is_away_no_end_is_recorded(
    message: Message, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    there = known(redis)
    with database_port() as port:
        port.away()
        is_unknown(message, OTHER)
        with pytest.raises(DatabaseAway):
            begin(received(message, OTHER), "n")
    assert known(redis) == there
    (line,) = caplog.messages
    assert line.startswith("Could not record of job j that the worker that got it knows no task 'a.job': ")


def test_a_database_that_refuses_to_tell_its_name_ends_no_worker(
    message: Message, redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> str:
        raise ProgrammingError("no such table")

    monkeypatch.setattr(own_database, "name", refuse)
    there = known(redis)
    is_unusable(message, OTHER)
    assert known(redis) == there
    assert caplog.messages[-1] == "Could not record of job j that rubbish: no such table"


@contextmanager
def copied_elsewhere() -> Iterator[None]:
    """Continue in a copy of the database, which is beside it."""
    original = connection.settings_dict["NAME"]
    connection.close()
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {original}_copy TEMPLATE {original}".encode())
        try:
            connection.settings_dict["NAME"] = f"{original}_copy"
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = original
            server.execute(f"DROP DATABASE {original}_copy WITH (FORCE)".encode())


def test_a_copy_beside_its_original_gets_a_name_of_its_own_and_sends_its_jobs_again(
    message: Message, redis: Redis, outbox: Outbox, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    recover_jobs(outbox.publish)
    assert own_database.name() == message.database
    aged(Execution.objects.get())
    clock.move(DAY)
    alive(redis, "live", clock)
    outbox.messages.clear()
    caplog.clear()
    with copied_elsewhere():
        for _ in range(3):  # the first pass finds the new epoch; a node has its ttl to be heard
            recover_jobs(outbox.publish)
            clock.move(TOO_LONG)
        (again,) = outbox.messages
        assert (again.job, again.task_id) == ("j", message.task_id)
        assert again.database == own_database.name() != message.database
        assert begin(received(message, message.database), "n").verdict == Verdict.FOREIGN
        assert begin(received(again, again.database), "n").verdict == Verdict.GO
        told = "This database is a copy or was moved: it has a new name in messages, and its jobs are sent again"
        assert caplog.messages.count(told) == 1
    assert own_database.name() == message.database


def test_a_start_in_a_copy_uses_the_new_name_at_once(
    message: Message, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_database.name()
    with copied_elsewhere():
        monkeypatch.setattr(own_database, "_known", "")
        recorded("k")
        assert outbox.messages[-1].job == "k"
        assert outbox.messages[-1].database != message.database


def test_a_role_that_may_not_know_the_place_keeps_the_name(message: Message) -> None:
    with connection.cursor() as cursor:
        cursor.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public")
        cursor.execute("SET ROLE pg_read_all_data")
        assert own_database._place() == ""
        cursor.execute("RESET ROLE")
    assert own_database.name() == message.database


def test_the_command_gives_a_physical_copy_a_new_name(message: Message, redis: Redis) -> None:
    own_database.name()
    epoch = job_records().memory().epoch
    answered = data("harbor", "repair", "new-name")
    assert answered == {"before": message.database, "name": own_database.name()}
    assert answered["name"] != message.database
    assert job_records().memory().epoch >= epoch
    assert RedisMemory.objects.get().looked_up == epoch, "so recovery looks up what waits since before"


def test_a_report_of_a_job_with_another_id_changes_no_task_of_its_number(message: Message, redis: Redis) -> None:
    stands("j", "Running", 0, 1)
    deliver_and_publish([JobReport("of another", message.task_id, 0, "Success")])
    assert Task.objects.get().status == "Running"


def test_the_name_is_compared_again_under_the_lease_of_the_run(
    message: Message, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name changed after the message was looked at, and before its job was."""
    real = admission.task_state_of

    def of_renamed(task_id: int, job: str) -> TaskState | None:
        state = real(task_id, job)
        return state and replace(state, database=OTHER)

    monkeypatch.setattr(admission, "task_state_of", of_renamed)
    write(redis, record("j", **WAITS))
    there = known(redis)
    assert begin(received(message, message.database), "n").verdict == Verdict.FOREIGN
    assert known(redis) == there
