"""The arguments that a job asks for: no later run has earlier ones, wherever copies are and whatever dies."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from celery import Task as Task_
from celery.exceptions import Reject
from django.db import connection

from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.reports import Door, Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.delivery.deliveries import deliver
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.ends import end_running
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_jobs
from harbor_refresh.tasks.jobs.lifecycle.requested_arguments import write_arguments
from harbor_refresh.tasks.jobs.lifecycle.retries import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.records.arguments import Arguments, Request, text_of_arguments
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.queue.node import host_of, this_node
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.jobs.hook_target import Request as Posted
from tests.integration.jobs.hook_target import Target
from tests.integration.jobs.sample_jobs import (
    RUNS,
    TOO_LONG,
    Outbox,
    aged,
    alive,
    chained,
    known,
    record,
    recorded,
    stands,
    write,
)
from tests.integration.jobs.test_a_run_in_its_process import got, one
from tests.integration.jobs.test_recovering_an_emptied_redis import came_back_older
from tests.integration.redis_state import PREFIX, Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "clock")

ARGUMENTS = f"{PREFIX}arguments"


@pytest.fixture
def headers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Those of the messages that were sent for another try."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(Task_, "apply_async", lambda *_, **options: sent.append(options["headers"]))
    return sent


def about(header: dict[str, Any]) -> tuple[int, int]:
    """The revision of the message and that of its arguments."""
    told = header[message_header.NAME]
    return told["revision"], told["arguments"]


def requested(redis: Redis, *jobs: str, page: int, revision: int) -> None:
    """What Redis has of a request."""
    for task in Task.objects.filter(job_id__in=jobs):
        redis.hset(ARGUMENTS, task.job_id, f"{task.pk}|{revision}|[[{page}], {{}}]")


def row(page: int, revision: int) -> None:
    Job.objects.update(args=[page], arguments_revision=revision)


def sent_pages(outbox: Outbox) -> list[Any]:
    return [one.args for one in outbox.messages]


@dataclass(frozen=True)
class Copies:
    """(revision of the message, of its arguments), (revision of the task, of the arguments in its row), and the
    revision of the arguments in Redis. `runs_with` is the place that has the newest ones."""

    message: tuple[int, int]
    row: tuple[int, int]
    redis: int | None
    runs_with: str
    are_unreported: bool = False


COPIES = {
    "the first message": Copies((0, 0), (0, 0), None, "message"),
    "a message of the latest try": Copies((2, 2), (2, 2), None, "message"),
    "that try came before its report": Copies((2, 2), (1, 0), None, "message", are_unreported=True),
    "so it did, and Redis knows of it": Copies((2, 2), (1, 0), 2, "message", are_unreported=True),
    "a copy of an older message": Copies((1, 0), (2, 2), None, "row"),
    "also if its try changed nothing, as the result of the job before it may have": Copies(
        (1, 0), (2, 0), None, "row"
    ),
    "a copy of an older message, before the report of the later try": Copies(
        (1, 0), (1, 0), 2, "redis", are_unreported=True
    ),
    "a later message with older arguments, before that report": Copies(
        (3, 0), (3, 0), 2, "redis", are_unreported=True
    ),
    "a later message with newer arguments than a row of a later revision": Copies(
        (2, 2), (4, 1), None, "message", are_unreported=True
    ),
    "a Redis that came back older": Copies((1, 1), (3, 3), 2, "row"),
    "or as old as the row": Copies((1, 1), (3, 3), 3, "row"),
    "a target of the hook that applies late": Copies((1, 0), (1, 3), None, "row"),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_run_has_the_newest_arguments(name: str, redis: Redis, outbox: Outbox) -> None:
    case = COPIES[name]
    recorded("j")
    stands("j", "Scheduled", case.row[0])
    row(1, case.row[1])
    if case.redis is not None:
        requested(redis, "j", page=2, revision=case.redis)
    received = ReceivedMessage("j", Task.objects.get().pk, case.message[0], 0, arguments_revision=case.message[1])
    begun = begin(received, "me")
    newest = {
        "message": None,
        "row": Arguments([1], {}, case.row[1]),
        "redis": Arguments([2], {}, case.redis or 0),
    }
    assert (begun.verdict, begun.arguments) == (Verdict.GO, newest[case.runs_with])
    assert begun.are_unreported is case.are_unreported


def test_a_report_brings_them_into_the_row_whatever_the_order(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    pk = Task.objects.get().pk
    for revision in (5, 3, 5):
        requested(redis, "j", page=revision, revision=revision)
        told = JobReport("j", pk, revision, "Scheduled", arguments=Arguments([revision], {"size": 10}, revision))
        deliver_and_publish([told, JobReport("j", pk, revision, "Running")])
        job = Job.objects.get()
        assert (job.args, job.kwargs, job.arguments_revision) == ([5], {"size": 10}, 5)
        assert not redis.exists(ARGUMENTS)


@pytest.mark.parametrize("revisions", [(3, 5, 4), (5, 4, 3)])
def test_of_several_in_one_transaction_each_job_gets_its_newest(
    revisions: tuple[int, ...], redis: Redis, outbox: Outbox
) -> None:
    recorded("a", "b")
    pks = dict(Task.objects.values_list("job_id", "pk"))
    deliver_and_publish(
        [
            JobReport(job, pks[job], revision, "Scheduled", arguments=Arguments([job, revision], {}, revision))
            for revision in revisions
            for job in ("b", "a")
        ]
    )
    rows = Job.objects.order_by("pk").values_list("args", "arguments_revision")
    assert list(rows) == [(["a", 5], 5), (["b", 5], 5)]


def test_the_result_of_the_job_before_is_one_of_them(redis: Redis, outbox: Outbox) -> None:
    chained("a", "b")
    pks = dict(Task.objects.values_list("job_id", "pk"))
    deliver_and_publish([JobReport("a", pks["a"], 0, "Success", result=7)])
    assert Job.objects.get(pk=pks["b"]).arguments == [7, "b"]
    deliver_and_publish([JobReport("b", pks["b"], 1, "Scheduled", arguments=Arguments([7, "c"], {}, 1))])
    assert Job.objects.get(pk=pks["b"]).arguments == [7, "c"]


def test_a_report_that_is_acknowledged_forgets_no_later_ones(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    requested(redis, "j", page=6, revision=6)
    pk = Task.objects.get().pk
    deliver_and_publish([JobReport("j", pk, 5, "Scheduled", arguments=Arguments([5], {}, 5))])
    assert redis.hgetall(ARGUMENTS) == {b"j": f"{pk}|6|[[6], {{}}]".encode()}


def test_a_report_of_another_job_with_its_task_changes_none(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    pk = Task.objects.get().pk
    deliver_and_publish([JobReport("of another", pk, 5, "Scheduled", arguments=Arguments([5], {}, 5))])
    assert (Job.objects.get().args, Job.objects.get().arguments_revision) == ([], 0)


def test_a_message_tells_the_revision_of_its_arguments(
    outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    message = one(outbox)
    got(message, lambda job: job.retry(args=(2,), countdown=0))
    deliver_and_publish(reports)
    second = replace(message, args=[2])
    got(second, lambda job: job.retry(countdown=0), headers[0])
    got(second, lambda job: job.retry(args=[], countdown=0), headers[1])
    assert [about(one) for one in headers] == [(1, 1), (2, 1), (3, 3)]
    assert [(one.status, one.arguments) for one in reports] == [
        ("Running", None),
        ("Scheduled", Arguments([2], {}, 1)),
        ("Running", None),
        ("Scheduled", None),
        ("Running", None),
        ("Scheduled", Arguments([], {}, 3)),
    ]


@pytest.mark.parametrize("copy", ["of the try", "of the first message"])
@pytest.mark.parametrize("in_row", [False, True])
def test_a_run_reports_them_if_the_row_has_older_ones_and_goes_on_with_them(  # noqa: PLR0917  # fixtures
    copy: str, in_row: bool, redis: Redis, outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    message = one(outbox)
    got(message, lambda job: job.retry(args=[2], countdown=0))
    if in_row:
        deliver_and_publish(reports)
    elif copy == "of the try":
        redis.delete(ARGUMENTS)  # then the message alone has them
    reports.clear()
    if copy == "of the try":
        message = replace(message, args=[2])
    seen = got(message, lambda job: job.retry(countdown=0), headers[0] if copy == "of the try" else None)
    assert (seen, about(headers[1])) == ([2], (2, 1))
    unreported = None if in_row else Arguments([2], {}, 1)
    assert [(one.status, one.arguments) for one in reports] == [("Running", unreported), ("Scheduled", None)]


def test_a_message_that_is_made_of_the_row_tells_their_revision(outbox: Outbox) -> None:
    execution = recorded("j")
    outbox.taken()
    row(5, 3)
    Job.objects.update(published_at=None)
    outbox.publish_after_commit(execution_id=execution.pk)
    assert [(one.args, one.arguments_revision) for one in outbox.messages] == [([5], 3)]
    told = message_header.of(outbox.messages[0])[message_header.NAME]
    assert message_header.received("j", told).arguments_revision == 3


def test_arguments_that_a_job_has_changed_in_place_are_others(
    redis: Redis, outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    start("SCAN", [[NewJob("a.job", [[1, 2, 3]], job_id="a")]])
    message = outbox.messages.pop()

    def work(job: Any, left: list[int]) -> None:
        left.pop(0)
        job.retry(countdown=0)

    got(message, work, gets_arguments=True)
    assert about(headers[0]) == (1, 1)
    assert redis.hget(ARGUMENTS, "a") == f"{message.task_id}|1|[[[2, 3]], {{}}]".encode()
    assert reports[-1].arguments == Arguments([[2, 3]], {}, 1)


def test_a_change_in_place_that_is_too_large_for_redis_is_in_the_message_alone(
    redis: Redis, outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    start("SCAN", [[NewJob("a.job", [["x" * 10] * 9_000], job_id="a")]])

    def work(job: Any, left: list[str]) -> None:
        left.pop(0)
        job.retry(countdown=0)

    got(outbox.messages.pop(), work, gets_arguments=True)
    assert about(headers[0]) == (1, 0)
    assert [(one.status, one.arguments) for one in reports] == [("Running", None), ("Scheduled", None)]
    assert not redis.exists(ARGUMENTS)


@pytest.mark.usefixtures("reports")
@pytest.mark.parametrize("asks_once_more", [False, True])
def test_they_outlive_each_process_that_knew_them(
    asks_once_more: bool, outbox: Outbox, clock: Clock, headers: list[dict[str, Any]], redis: Redis
) -> None:
    """A host dies, with the process that asked for the try and with the one that ran it, before either had
    reported it. The second may have asked for one more try, with the same arguments."""
    message = one(outbox)
    got(message, lambda job: job.retry(args=[2], countdown=0))
    if asks_once_more:
        got(replace(message, args=[2]), lambda job: job.retry(countdown=0), headers[0])
    assert len(headers) == 1 + asks_once_more
    run = begin(message_header.received("a", headers[-1][message_header.NAME]), "dead").run
    job_records().check_in(run, "layer 1")
    clock.move(TOO_LONG)
    recover_jobs(outbox.publish)
    assert [(one.revision, one.args) for one in outbox.messages] == [(run.revision + 1, [2])]
    assert not redis.exists(ARGUMENTS)


def limit_is_over(run: Run) -> None:
    assert end_running(run.job, host_of(this_node.name), Status.ERROR, "TimeLimitExceeded")


def it_fails(run: Run) -> None:
    job_records().settle(run, Status.ERROR, "ValueError: no")


@pytest.mark.usefixtures("reports")
@pytest.mark.parametrize("ends", [limit_is_over, it_fails])
def test_a_try_by_hand_has_them_however_the_run_has_ended(
    ends: Callable[[Run], None], outbox: Outbox, clock: Clock, headers: list[dict[str, Any]]
) -> None:
    """The process that had to report all this is dead."""
    message = one(outbox)
    got(message, lambda job: job.retry(args=[2], countdown=0))
    ends(begin(message_header.received("a", headers[0][message_header.NAME]), this_node.name).run)
    clock.move(TOO_LONG)
    recover_jobs(outbox.publish)
    task = Task.objects.get()
    assert task.status == "Error"
    assert retry_failed(task.execution_id) == 1
    assert sent_pages(outbox) == [[2]]


@pytest.mark.usefixtures("headers")
def test_a_job_that_was_stopped_while_they_were_reported_is_resumed_with_them(
    outbox: Outbox, reports: list[JobReport]
) -> None:
    message = one(outbox)
    got(message, lambda job: job.retry(args=[2], countdown=60))
    deliver_and_publish(reports[:1])
    task = Task.objects.get()
    stop_jobs(task.execution_id)
    deliver_and_publish(reports[1:])
    task.refresh_from_db()
    assert task.status == "Stopped"
    assert resume_stopped(task.execution_id) == 1
    assert sent_pages(outbox) == [[2]]


@pytest.mark.usefixtures("headers")
def test_so_is_one_that_asked_for_them_after_it_was_asked_to_stop(
    outbox: Outbox, reports: list[JobReport], clock: Clock
) -> None:
    message = one(outbox)
    execution_id = Task.objects.get().execution_id

    def work(job: Any) -> None:
        deliver_and_publish(reports)
        stop_jobs(execution_id)
        job.retry(args=[2], countdown=60)

    with suppress(Reject):
        got(message, work)
    clock.move(TOO_LONG)
    recover_jobs(outbox.publish)
    assert Task.objects.get().status == "Stopped"
    assert resume_stopped(execution_id) == 1
    assert sent_pages(outbox) == [[2]]


def test_a_report_that_the_hook_takes_late_brings_no_earlier_ones(
    outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]], clock: Clock, core: Target
) -> None:
    """Reports that the target did not take are posted again after those that have come since."""
    message = one(outbox)
    pk = message.task_id

    def applied(posted: Posted) -> None:
        told = posted.body
        report([Report(pk, told["status"], told["metadata"]["revision"], "", 0)], Door.API)

    got(message, lambda job: job.retry(args=[2], countdown=0))
    core.answers[str(pk)] = 503
    left = deliver(reports).left
    assert len(left) == 2
    reports.clear()
    got(replace(message, args=[2]), lambda job: job.retry(args=[3], countdown=0), headers[0])
    core.answers.clear()
    core.meanwhile = applied
    assert deliver([*reports, *left]).left == []
    run = begin(message_header.received("a", headers[-1][message_header.NAME]), "dead").run
    deliver([JobReport.of_run(run, Status.RUNNING)])
    clock.move(TOO_LONG)
    recover_jobs(outbox.publish)
    assert sent_pages(outbox) == [[3]]


@pytest.mark.parametrize("is_reported", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_a_redis_that_came_back_older_brings_no_earlier_ones(
    is_reported: bool, dies: bool, redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    """The job waits for page 3. Redis came back with the run of page 2, and a copy of its message begins."""
    aged(recorded("j"))
    outbox.taken()
    stands("j", "Scheduled", 2, 2)
    row(3, 2)
    requested(redis, "j", page=2, revision=1)
    write(redis, record("j", "Running", 1, "dead", acknowledged=(0, "Running"), runs=2))
    pk = Task.objects.get().pk
    begun = begin(ReceivedMessage("j", pk, 1, 1, arguments_revision=1), "live2")
    assert (begun.run.revision, begun.arguments) == (2, Arguments([3], {}, 2))
    if is_reported:
        deliver_and_publish([JobReport.of_run(begun.run, Status.RUNNING)])
    clock.move(9)
    if not dies:
        job_records().renew([begun.run])
    clock.move(TOO_LONG - 9)
    recover_jobs(outbox.publish)
    assert (Job.objects.get().args, sent_pages(outbox)) == ([3], [[3]] if dies else [])
    assert not redis.exists(ARGUMENTS)


def test_nor_does_the_record_of_an_earlier_try_that_is_brought_to_the_latest(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    """The report of page 4 was on its way while Redis came back with the record of page 2, and was acknowledged
    there. The reaper brings that record to the revision of page 4, without its message."""
    aged(recorded("j"))
    outbox.taken()
    stands("j", "Scheduled", 3, 3)
    row(4, 3)
    requested(redis, "j", page=2, revision=1)
    write(
        redis, record("j", "Scheduled", 1, acknowledged=(3, "Scheduled"), sent=False, ago=3600, message="page 2")
    )
    for _ in range(3):
        came_back_older(redis)
        clock.move(TOO_LONG)
        recover_jobs(outbox.publish)
        clock.move(TOO_LONG)
        reap()
    assert {(one.revision, *one.args) for one in outbox.messages} == {(3, 4)}
    assert Job.objects.get().args == [4]
    found = known(redis)["records"]["j"]
    assert (found.revision, found.status, found.message) == (3, "Scheduled", "")


def test_recovery_writes_what_processes_have_left_and_drops_what_is_nobodys(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    aged(recorded("a", "b"))
    delete([recorded("gone").pk])
    outbox.taken()
    write(redis, record("a", node="live", **RUNS))
    alive(redis, "live", clock)
    pks = dict(Task.objects.values_list("job_id", "pk"))
    rubbish = {
        "gone": "99|1|[[2], {}]",
        "of another": f"{pks['b']}|1|[[2], {{}}]",
        b"\xff": f"{pks['b']}|1|[[2], {{}}]",
        "b": "no request",
    }
    redis.hset(ARGUMENTS, mapping={"a": f"{pks['a']}|1|[[2], {{}}]", **rubbish})
    assert recover_jobs(outbox.publish) == Recovered(unreadable=2)
    assert dict(Job.objects.values_list("task__job_id", "args")) == {"a": [2], "b": []}
    assert not redis.exists(ARGUMENTS)


def test_what_the_database_refuses_stays_in_redis_and_stops_no_other(redis: Redis, outbox: Outbox) -> None:
    aged(recorded("a", "b", "c"))
    outbox.taken()
    requested(redis, "a", "b", "c", page=2, revision=1)
    pk = Task.objects.get(job_id="b").pk
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE execution_job ADD CONSTRAINT refuses CHECK (task_id <> {pk} OR arguments_revision = 0)"
        )
    assert recover_jobs(outbox.publish) == Recovered(troubled=1)
    assert dict(Job.objects.values_list("task__job_id", "args")) == {"a": [2], "b": [], "c": [2]}
    assert redis.hkeys(ARGUMENTS) == [b"b"]


def test_recovery_waits_for_no_row_and_leaves_its_arguments_to_the_next_pass(redis: Redis, outbox: Outbox) -> None:
    """A publication holds rows while it waits for the broker."""
    aged(recorded("a", "b"))
    outbox.taken()
    requested(redis, "a", "b", page=2, revision=1)
    held = Job.objects.filter(task__job_id="a").select_for_update()
    with transaction_held_open(lambda: list(held)) as commit:
        assert recover_jobs(outbox.publish) == Recovered()
        assert redis.hkeys(ARGUMENTS) == [b"a"]
        commit()
    recover_jobs(outbox.publish)
    assert set(Job.objects.values_list("arguments_revision", flat=True)) == {1}
    assert not redis.exists(ARGUMENTS)


def test_of_two_transactions_at_once_the_newer_arguments_stay(outbox: Outbox) -> None:
    recorded("j")
    pk = Task.objects.get().pk

    def written(revision: int) -> Callable[[], None]:
        return lambda: write_arguments([Request("j", pk, Arguments([revision], {}, revision))])

    with transaction_held_open(written(3)) as commit, in_background(written(2)) as finish:
        wait_until(lambda: waiting_for_locks() == 1, "the older arguments to wait for the row")
        commit()
        finish()
    assert (Job.objects.get().args, Job.objects.get().arguments_revision) == ([3], 3)


def test_a_job_that_is_resumed_in_a_revision_below_that_of_its_arguments_goes_on(
    outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    """Its reports were behind when it was stopped, so its task is: pages 2 to 11 were written late."""
    start("SCAN", [[NewJob("a.job", job_id="a", max_attempts=100)]])
    message = outbox.messages.pop()
    for page in range(2, 12):
        args, header = ([page - 1], headers[-1]) if headers else ([], None)
        got(replace(message, args=args), asks_for(page), header)
    deliver_and_publish(reports[:2])
    task = Task.objects.get()
    stop_jobs(task.execution_id)
    deliver_and_publish(reports[2:])
    task.refresh_from_db()
    assert (task.status_revision, Job.objects.get().arguments_revision) == (1, 10)
    reports.clear()
    headers.clear()

    assert resume_stopped(task.execution_id) == 1
    (message,) = outbox.messages
    pages = [*got(message, asks_for(12))]
    for page in (13, 14):
        deliver_and_publish(reports)
        pages += got(replace(message, args=[page - 1]), asks_for(page), headers[-1])
    assert pages == [11, 12, 13]
    assert [about(one) for one in headers] == [(11, 11), (12, 12), (13, 13)]


def asks_for(page: int) -> Callable[[Any], None]:
    return lambda job: job.retry(args=[page], countdown=0, max_retries=None)


def test_a_run_whose_record_is_gone_replaces_no_later_request(redis: Redis, outbox: Outbox, clock: Clock) -> None:
    recorded("j")
    requested(redis, "j", page=9, revision=9)
    pk = Task.objects.get().pk
    job_records().settle(Run("j", pk, "me", 2, 1), "Scheduled", "", arguments="[[3], {}]")
    assert redis.hget(ARGUMENTS, "j") == f"{pk}|9|[[9], {{}}]".encode()


def test_a_request_of_another_task_is_none_of_this_job(redis: Redis, outbox: Outbox) -> None:
    recorded("j")
    pk = Task.objects.get().pk
    redis.hset(ARGUMENTS, "j", f"{pk + 1}|9|[[9], {{}}]")
    assert begin(ReceivedMessage("j", pk, 0, 0), "me").arguments is None


def test_a_header_may_tell_no_revision(outbox: Outbox, reports: list[JobReport]) -> None:
    message = one(outbox)
    header = message_header.of(message)
    header[message_header.NAME]["arguments"] = None
    got(replace(message, args=[1]), lambda job: None, header)
    assert [one.status for one in reports] == ["Running", "Success"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1|1",
        "x|1|[[], {}]",
        "0|1|[[], {}]",
        "1|0|[[], {}]",
        f"1|{2**63}|[[], {{}}]",
        f"{2**63}|1|[[], {{}}]",
        "1|1|[{}, []]",
        "1|1|[[]]",
        "1|1|[[], {}, 1]",
        "1|1|" + "[" * 100_000,
        "1|1|[[" + "[" * 300 + "]" * 300 + "], {}]",
        "+1|1|[[], {}]",
        "1|1|[[],{}]",
        "1|1|[[NaN], {}]",
        '1|1|[["\\u0000"], {}]',
        '1|1|[["' + "x" * 60_000 + '"], {}]',
        "1|1|{}",
    ],
)
def test_what_another_program_has_written_is_no_request(text: str) -> None:
    assert Request.read("j", text) is None


def test_a_request_is_read_as_it_was_written() -> None:
    text = text_of_arguments([3, "ä|b"], {"size": 10})
    assert Request.read("j", f"7|2|{text}") == Request("j", 7, Arguments([3, "ä|b"], {"size": 10}, 2))


def test_they_may_have_60_000_characters_and_any_reason(
    outbox: Outbox, reports: list[JobReport], headers: list[dict[str, Any]]
) -> None:
    most = "x" * (60_000 - len('[[""], {}]'))
    message = one(outbox)
    got(message, lambda job: job.retry(args=[most], exc=ValueError("why"), countdown=0))
    assert len(headers) == 1
    with pytest.raises(Reject, match=r"60,000 characters at most, and got 60,001"):
        got(replace(message, args=[most]), lambda job: job.retry(args=[most + "x"]), headers[0])
    assert (reports[-1].status, "and got 60,001" in reports[-1].message) == ("Error", True)
