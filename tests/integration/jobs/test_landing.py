"""Reports of jobs land in the database: reported, acknowledged, and those who follow in a chain seen to."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.delivery import deliveries
from harbor_refresh.tasks.jobs.delivery.deliveries import Delivered
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.models import Job
from tests.integration.concurrency import in_background, wait_until
from tests.integration.database_state import deadlocks_so_far, waiting_for_locks
from tests.integration.jobs.sample_jobs import (
    Outbox,
    chained,
    database_port,
    known,
    record,
    recorded,
    stands,
    state,
    tasks_refuse,
    write,
)
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "clock")


def report(job: str, status: str, revision: int = 0, message: str = "", result: Any = None) -> JobReport:
    return JobReport(job, Task.objects.get(job_id=job).pk, revision, status, message, result)


def all_of(count: int) -> Delivered:
    return Delivered(count, refused=[])


def args_of(*jobs: str) -> list[tuple[Sequence[Any], int | None]]:
    """And by which run of the job before it something was handed on."""
    rows = Job.objects.filter(task__job_id__in=jobs).order_by("pk")
    return [(row.arguments, row.handed_on_revision) for row in rows]


def test_turns_become_reports_and_what_is_not_over_is_noted_as_landed(redis: Redis, outbox: Outbox) -> None:
    recorded("begins", "ends", "tries again", "fails", "waits")
    stands("ends", "Running")
    ran = (0, "Running")
    gone: dict[str, Any] = {"node": "n", "acknowledged": ran}
    scheduled = record("tries again", "Scheduled", 1, ago=-30, sent=False)
    write(redis, record("begins", node="n"), record("ends", "Success", **gone), record("fails", "Error", **gone))
    write(redis, scheduled)
    reports = [
        report("begins", "Running"),
        report("ends", "Success"),
        report("tries again", "Scheduled", 1, "OSError: not yet"),
        report("fails", "Error", 0, "ValueError: broken"),
    ]
    assert deliver_and_publish(reports) == all_of(4)
    assert known(redis) == state(
        {
            "begins": ("Running", 0, 0, ""),
            "ends": ("Success", 0, 0, ""),
            "tries again": ("Scheduled", 1, 1, "OSError: not yet"),
            "fails": ("Error", 0, 0, "ValueError: broken"),
            "waits": ("Pending", 0, 0, ""),
        },
        [
            record("begins", node="n", acknowledged=ran),
            record("tries again", "Scheduled", 1, ago=-30, sent=False, acknowledged=(1, "Scheduled")),
        ],
    )


def test_turns_that_come_together_leave_what_they_would_have_left_one_by_one(redis: Redis, outbox: Outbox) -> None:
    """The first end of a run stands, and each run counts."""
    recorded("ends", "ends twice", "tries again", "is over")
    write(redis, record("tries again", "Running", 1, node="n"))
    reports = [
        report("ends", "Running"),
        report("ends twice", "Running"),
        report("tries again", "Running"),
        report("ends", "Success"),
        report("ends twice", "Error", 0, "ValueError: broken"),
        report("ends twice", "Success"),
        report("tries again", "Scheduled", 1),
        report("is over", "Stopped", 0, "it was revoked"),
        report("tries again", "Running", 1),
        report("is over", "Running"),
    ]
    delivered = deliver_and_publish(reports)
    assert (delivered.left, delivered.refused) == ((), [])
    assert known(redis) == state(
        {
            "ends": ("Success", 0, 0, ""),
            "ends twice": ("Error", 0, 0, "ValueError: broken"),
            "tries again": ("Running", 1, 1, ""),
            "is over": ("Stopped", 0, 0, "it was revoked"),
        },
        [record("tries again", "Running", 1, node="n", acknowledged=(1, "Running"))],
    )


def test_a_turn_that_comes_late_changes_no_task_and_lands_all_the_same(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    stands("j", "Stopped", 2, 2)
    write(redis, record(status="Success", revision=1))
    assert deliver_and_publish([report("j", "Success", 1)]) == all_of(1)
    assert known(redis) == state({"j": ("Stopped", 2, 2, "")})


def test_nothing_is_landed_without_a_query() -> None:
    with database_port() as port:
        port.away()
        assert deliver_and_publish([]) == all_of(0)


def test_a_turn_that_the_database_refuses_stands_alone_and_is_not_acknowledged(
    redis: Redis, outbox: Outbox
) -> None:
    jobs = [f"j{number}" for number in range(9)]
    recorded(*jobs)
    write(redis, *(record(job, "Success", node="n") for job in jobs))
    tasks_refuse(f"OLD.id = {Task.objects.get(job_id='j4').pk}")
    reports = [report(job, "Success") for job in jobs]
    assert deliver_and_publish(reports) == Delivered(8, refused=[reports[4]])
    tasks = dict.fromkeys(jobs, ("Success", 0, 0, "")) | {"j4": ("Pending", 0, 0, "")}
    assert known(redis) == state(tasks, [record("j4", "Success", node="n")])


def test_a_database_that_is_away_acknowledges_nothing(redis: Redis, outbox: Outbox) -> None:
    recorded("a", "b")
    write(redis, record("a", "Success", node="n"), record("b", "Success", node="n"))
    before, reports = known(redis), [report("a", "Success"), report("b", "Success")]
    with database_port() as port:
        port.away()
        with pytest.raises(DatabaseAway):
            deliver_and_publish(reports)
    assert known(redis) == before
    assert deliver_and_publish(reports) == all_of(2)


def test_of_a_chain_the_next_gets_the_result_and_its_message_in_one_go(redis: Redis, outbox: Outbox) -> None:
    chained("a", "b", "c")
    assert outbox.taken() == [("a", 0, 0)]
    write(redis, record("a", "Success", node="n"))
    assert deliver_and_publish([report("a", "Success", result={"layers": 7})]) == all_of(1)
    assert outbox.taken() == [("b", 0, 0)]
    assert args_of("a", "b", "c") == [(["a"], None), ([{"layers": 7}, "b"], 0), (["c"], None)]
    tasks = {job: ("Success" if job == "a" else "Pending", 0, 0, "") for job in "abc"}
    assert known(redis) == state(tasks, unpublished=["c"])


def test_what_takes_no_result_gets_none(outbox: Outbox) -> None:
    chained("a", "b", takes_result=False)
    deliver_and_publish([report("a", "Success", result=7)])
    assert args_of("a", "b") == [(["a"], None), (["b"], 0)]
    assert outbox.taken() == [("a", 0, 0), ("b", 0, 0)]


def test_a_turn_that_is_no_end_moves_no_chain(outbox: Outbox) -> None:
    chained("a", "b")
    deliver_and_publish([report("a", "Running"), report("a", "Scheduled", 1)])
    assert outbox.taken() == [("a", 0, 0)]
    assert args_of("b") == [(["b"], None)]


@pytest.mark.parametrize("status", ["Error", "Stopped"])
def test_all_that_is_left_of_a_broken_chain_is_stopped(status: str, redis: Redis, outbox: Outbox) -> None:
    chained("a", "b", "c")
    chained("other a", "other b")
    assert deliver_and_publish([report("a", status, message="why")]) == all_of(1)
    assert outbox.taken() == [("a", 0, 0), ("other a", 0, 0)]
    stopped = ("Stopped", 0, 0, "a job before it in its chain did not succeed")
    waits = ("Pending", 0, 0, "")
    tasks = {"a": (status, 0, 0, "why"), "b": stopped, "c": stopped, "other a": waits, "other b": waits}
    assert known(redis) == state(tasks, unpublished=["b", "c", "other b"])


@pytest.mark.parametrize("status", ["Success", "Error"])
def test_who_dies_between_the_commit_and_the_acknowledgement_is_reported_again_and_nothing_changes(
    status: str, redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    chained("a", "b")
    outbox.taken()
    write(redis, record("a", status, node="n"))
    reports = [report("a", status, message="why", result=7)]

    def die(_: Any) -> None:
        raise QueueUnavailable("Redis: gone")

    with monkeypatch.context() as patched:
        patched.setattr(job_records(), "acknowledge", die)
        with pytest.raises(QueueUnavailable):
            deliver_and_publish(reports)
    between, rows = known(redis), args_of("a", "b")
    assert (between["tasks"]["a"], outbox.taken()) == ((status, 0, 0, "why"), [])
    assert deliver_and_publish(reports) == all_of(1)
    assert known(redis) == between | {
        "records": {},
        "published": {"a", "b"} if status == "Success" else {"a"},
    }
    assert args_of("a", "b") == rows
    assert outbox.taken() == ([("b", 0, 0)] if status == "Success" else [])


def test_an_end_that_comes_again_when_its_chain_has_gone_on_changes_nothing(redis: Redis, outbox: Outbox) -> None:
    chained("a", "b", "c")
    deliver_and_publish([report("a", "Success", result=1)])
    deliver_and_publish([report("b", "Success", result=2)])
    before, rows = known(redis), args_of("a", "b", "c")
    outbox.taken()
    assert deliver_and_publish([report("a", "Success", result=1), report("b", "Success", result=2)]) == all_of(2)
    assert (known(redis), args_of("a", "b", "c"), outbox.taken()) == (before, rows, [])


def test_many_ends_at_once_hand_on_each_its_own_result(outbox: Outbox) -> None:
    firsts = [f"{number} first" for number in range(30)]
    for job in firsts:
        chained(job, job.replace("first", "then"))
    outbox.taken()
    reports = [report(job, "Success", result=job) for job in firsts]
    assert deliver_and_publish(reports) == all_of(30)
    thens = [job.arguments for job in Job.objects.filter(follows__isnull=False)]
    assert sorted(thens) == sorted([job, job.replace("first", "then")] for job in firsts)
    assert len(outbox.taken()) == 30


@pytest.mark.parametrize("late", ["Stopped", "Error"])
def test_an_end_that_comes_too_late_moves_no_chain(late: str, redis: Redis, outbox: Outbox) -> None:
    """A second message of the first job was dropped, or its first run comes back from the dead."""
    chained("a", "b")
    outbox.taken()
    deliver_and_publish([JobReport("a", Task.objects.get(job_id="a").pk, 0, "Success", result=7)])
    assert outbox.taken() == [("b", 0, 0)]
    before = known(redis)["tasks"], args_of("b")
    deliver_and_publish([JobReport("a", Task.objects.get(job_id="a").pk, 0, late, "late")])
    deliver_and_publish([JobReport("a", Task.objects.get(job_id="a").pk, 0, "Success", result="another")])
    assert (known(redis)["tasks"], args_of("b")) == before


def test_a_result_that_is_no_json_is_no_reason_not_to_land(redis: Redis, outbox: Outbox) -> None:
    """Nobody of ours wrote it. Its end counts all the same."""
    recorded("j")
    broken = replace(record("j", "Success", node="n"), message="result: {oops")
    deliver_and_publish([JobReport.of(broken)])
    assert known(redis)["tasks"] == {"j": ("Success", 0, 0, "result: {oops")}


def test_the_ends_of_two_chains_lock_their_tasks_in_one_order(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One delivery ends a job that another one reports, and both report a third job."""
    chained("a", "behind a")
    recorded("alone")
    before = deadlocks_so_far()
    ends = [report("a", "Error"), report("alone", "Success")]
    begins = [report("behind a", "Running"), report("alone", "Running")]
    written, go_on = Event(), Event()
    original = deliveries._report

    def wait_once(reports: Sequence[JobReport]) -> None:
        original(reports)
        if not written.is_set():
            written.set()
            assert go_on.wait(60)

    monkeypatch.setattr(deliveries, "_report", wait_once)
    with in_background(lambda: deliveries.deliver(ends)) as one:
        assert written.wait(60)
        with in_background(lambda: deliveries.deliver(begins)) as other:
            wait_until(lambda: waiting_for_locks() == 1, "the second delivery to wait for a task")
            go_on.set()
            assert (one().refused, other().refused) == ([], [])
    assert deadlocks_so_far() == before
    statuses = dict(Task.objects.values_list("job_id", "status"))
    assert statuses == {"a": "Error", "behind a": "Stopped", "alone": "Success"}
