"""once: of all starts of a vendor type with one key, one makes the execution, and the others find it."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from harbor_refresh.celery import app
from harbor_refresh.executions.errors import AlreadyUnderWay, Contended, Refused
from harbor_refresh.executions.lifecycle.deletion import delete_final
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.jobs.starting.unique_keys import retry_on_conflict
from harbor_refresh.tasks.models import Job, Terms
from tests import servers
from tests.integration.concurrency import in_background, one_after_the_other, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, ends
from tests.integration.sample_executions import delete
from tests.pages import ROOT
from tests.started import start as record

pytestmark = pytest.mark.usefixtures("database", "outbox")

NIGHT = "nightly 2026-11-25"
#: What a beat does, as soon as its test says so.
A_BEAT = """
import sys, django
django.setup()
from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.jobs.starting.job_rows import start_or_find
from harbor_refresh.tasks.jobs.terms import terms_of
from harbor_refresh.tasks.jobs import sender
sender._publish = lambda rows: len(rows)
print("ready", flush=True)
for key in sys.stdin:
    jobs = [[NewJob("a.job")] for _ in range(3)]
    execution, is_new = start_or_find(NewExecution("MIRROR"), jobs, of_it=terms_of(key.strip()))
    print(execution.pk, is_new, flush=True)
"""


@app.task(base=TrackedJob, name="once.copy", shared=False)
def copy(job: Handle, name: str = "") -> None:
    pass


@app.task(base=TrackedJob, name="once.unique", unique=True, shared=False)
def only_one(job: Handle) -> None:
    pass


def mirrored(once: str = NIGHT, vendor_type: str = "MIRROR", **options: Any) -> TrackedExecution:
    return start(vendor_type, jobs=[copy.s("a"), copy.s("b")], once=once, **options)


def test_a_second_start_finds_the_execution_and_starts_nothing(outbox: Outbox) -> None:
    """celery#1495: two beats send the same entry."""
    first, second = mirrored(), mirrored(vendor_id=8)
    assert (first, first.is_new, second.is_new) == (second, True, False)
    assert (Execution.objects.count(), Job.objects.count(), len(outbox.take())) == (1, 2, 2)
    ends(first)
    third = mirrored()
    assert (third, third.status, third.is_new) == (first, "Success", False)


def test_a_key_is_that_of_its_vendor_type() -> None:
    assert (
        len({mirrored(), mirrored(vendor_type="SCAN"), mirrored("another night"), mirrored(""), mirrored("")}) == 5
    )
    assert Terms.objects.count() == 3


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_at_the_same_moment_one_makes_it_and_the_other_waits_for_its_commit(commits: bool) -> None:
    """Without the row of the first there is nothing that a check could find: the constraint decides."""

    def first() -> TrackedExecution:
        started = mirrored()
        if not commits:
            transaction.set_rollback(True)
        return started

    one, other = one_after_the_other(first, mirrored)
    assert ((one == other), other.is_new) == (commits, not commits)
    assert list(Execution.objects.values_list("pk", flat=True)) == [other.pk]
    assert Job.objects.count() == 2


def test_beats_in_processes_of_their_own_start_one_each_night() -> None:
    """celery#1495: four beats beside each other, eight nights."""
    env = os.environ | {
        "DATABASE_URL": servers.postgres.url_for(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "settings.test",
    }
    command = [sys.executable, "-c", A_BEAT]
    beats = [
        subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    try:
        assert [one.stdout and one.stdout.readline() for one in beats] == ["ready\n"] * 4
        for night in range(8):
            for one in beats:
                assert one.stdin
                one.stdin.write(f"night {night}\n")
                one.stdin.flush()
            said = [str(one.stdout and one.stdout.readline()).split() for one in beats]
            assert len({pk for pk, _ in said}) == 1
            assert sorted(is_new for _, is_new in said) == ["False", "False", "False", "True"]
    finally:
        for one in beats:
            one.kill()
            one.communicate()
    assert (Execution.objects.count(), Job.objects.count()) == (8, 24)


@pytest.mark.parametrize("sweeps", [True, False])
def test_the_key_lives_as_long_as_its_execution(sweeps: bool) -> None:
    first = mirrored()
    ends(first)
    assert delete_final([first.pk]) == (1, 2) if sweeps else delete([first.pk]) == 1
    assert not Terms.objects.exists()
    assert mirrored().is_new


def test_a_start_that_makes_nothing_leaves_no_key() -> None:
    start("MIRROR", jobs=[only_one.s()])
    with pytest.raises(AlreadyUnderWay):
        start("MIRROR", jobs=[only_one.s()], once=NIGHT)
    with pytest.raises(Refused):
        start("MIRROR", jobs=[copy.s(object())], once=NIGHT)
    assert not Terms.objects.exists()


@pytest.mark.parametrize("once", [None, "x" * 256])
def test_a_key_that_is_no_text_is_refused(once: Any) -> None:
    with pytest.raises(Refused, match="once takes text of at most 255 characters, and got"):
        mirrored(once)
    assert not Execution.objects.exists()


# unique jobs: of two alike one is queued or running, whatever is started and tried again at the same moment


FAILED, AGAIN, NEW = ("Error", 0), ("Pending", 1), ("Pending", 0)


def started(argument: Any = "x") -> Execution:
    return record("SCAN", [[NewJob("a.job", [argument], is_unique=True)]])


def failed(argument: Any = "x") -> Execution:
    execution = started(argument)
    ends(execution, "Error")
    return execution


def fails(execution: Execution, *arguments: Any) -> None:
    found = execution.tasks.filter(job__args__0__in=arguments)
    report([Report(one.pk, "Error", one.status_revision) for one in found])


def jobs() -> list[tuple[tuple[str, int], bool]]:
    """Of each, the oldest first: its task's status and revision, and whether it holds the key."""
    found = Job.objects.order_by("pk").values_list("task__status", "task__status_revision", "holds_key")
    return [((status, revision), holds) for status, revision, holds in found]


def refused(second: Callable[[], Any]) -> Callable[[], Any]:
    """An error is a result as well."""

    def told() -> Any:
        try:
            return second()
        except AlreadyUnderWay:
            return AlreadyUnderWay

    return told


def test_of_a_start_and_another_try_of_its_like_the_one_that_comes_first_stands(outbox: Outbox) -> None:
    execution = failed()
    outbox.take()
    assert one_after_the_other(lambda: retry_failed(execution.pk), refused(started)) == (1, AlreadyUnderWay)
    assert (jobs(), len(outbox.take())) == ([(AGAIN, True)], 1)
    ends(execution, "Error")
    _, again = one_after_the_other(started, lambda: retry_failed(execution.pk))
    assert (again, len(outbox.take())) == (0, 1)
    assert jobs() == [(("Error", 1), False), (NEW, True)]


def test_of_two_starts_the_second_starts_nothing_beside_the_first_that_took_the_key_of_what_ended() -> None:
    failed()
    _, second = one_after_the_other(started, refused(started))
    assert second == AlreadyUnderWay
    assert jobs() == [(FAILED, False), (NEW, True)]


@pytest.mark.parametrize("holder_first", [True, False])
def test_of_two_executions_with_the_same_unique_job_one_is_tried_again(holder_first: bool) -> None:
    """The one whose job holds the key, or the one whose job has to take it from the other."""
    let_go, holds = failed().pk, failed().pk
    assert jobs() == [(FAILED, False), (FAILED, True)]
    first, second = (holds, let_go) if holder_first else (let_go, holds)
    assert one_after_the_other(lambda: retry_failed(first), lambda: retry_failed(second)) == (1, 0)
    again = [(FAILED, False), (AGAIN, True)]
    assert jobs() == (again if holder_first else again[::-1])


@pytest.mark.parametrize("is_a_start", [False, True])
def test_of_two_that_take_a_key_that_no_job_holds_one_has_it_and_neither_breaks(is_a_start: bool) -> None:
    """There is no row for the second to wait for: it meets the constraint, and looks again."""
    one, other, holder = failed().pk, failed().pk, failed().pk
    delete([holder])
    second = started if is_a_start else lambda: retry_failed(other)
    assert one_after_the_other(lambda: retry_failed(one), refused(second)) == (
        1,
        AlreadyUnderWay if is_a_start else 0,
    )
    assert jobs() == [(AGAIN, True), (FAILED, False)]


def test_a_job_that_lost_its_key_wants_the_one_it_was_started_with() -> None:
    """PostgreSQL returns this number as another one, and the arguments of the row may change."""
    execution = failed(1e22)
    started(1e22)
    assert retry_failed(execution.pk) == 0
    assert jobs() == [(FAILED, False), (NEW, True)]


def test_tasks_are_locked_in_id_order_wherever_they_lie(database: str) -> None:
    arguments = [f"x{number}" for number in range(8)]
    execution = record("SCAN", [[NewJob("a.job", [one], is_unique=True)] for one in arguments])
    fails(execution, *arguments)
    lowest = execution.tasks.earliest("pk").pk
    Task.objects.filter(pk=lowest).update(update_time=Now())  # now it lies behind the others
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM task WHERE id = %s FOR UPDATE", [lowest])
        with in_background(lambda: retry_failed(execution.pk)) as again:
            wait_until(lambda: waiting_for_locks() == 1, "it waits for the lowest")
            with transaction.atomic():
                free = Task.objects.exclude(pk=lowest).select_for_update(skip_locked=True)
                assert len(free) == len(arguments) - 1
            other.rollback()
            assert again() == len(arguments)


def test_a_conflict_that_never_ends_raises_after_three_tries_and_nothing_is_written() -> None:
    failed()
    started()
    tries = []

    def take_it_all_the_same() -> None:
        tries.append(Job.objects.filter(holds_key=False).update(holds_key=True))

    with pytest.raises(Contended, match="nothing was written"):
        retry_on_conflict(lambda: (tries.append(0), take_it_all_the_same()))
    assert tries == [0, 0, 0]
    assert jobs() == [(FAILED, False), (NEW, True)]
