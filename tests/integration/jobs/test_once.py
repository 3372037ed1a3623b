"""once: of all starts of a vendor type with one key, one makes the execution, and the others find it."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.db import connection, transaction

from harbor_refresh.celery import app
from harbor_refresh.executions.errors import AlreadyUnderWay, Refused
from harbor_refresh.executions.lifecycle.deletion import delete_final
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import Handle, TrackedExecution, TrackedJob, start
from harbor_refresh.tasks.models import Job, Terms
from tests import servers
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.sample_jobs import Outbox, ends
from tests.integration.sample_executions import delete
from tests.pages import ROOT

pytestmark = pytest.mark.usefixtures("database", "outbox")

NIGHT = "nightly 2026-11-25"
#: What a beat does, as soon as its test says so.
A_BEAT = """
import sys, django
django.setup()
from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.jobs.starting.creation import start_or_find
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

    with transaction_held_open(first) as end, in_background(mirrored) as second:
        wait_until(lambda: waiting_for_locks() == 1, "the second waits for the first")
        one, other = end(), second()
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
