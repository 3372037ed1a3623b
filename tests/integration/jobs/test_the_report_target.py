"""Reports of jobs go to the report target: what an HTTP server gets, what its answers mean, and who posts again. A
chain goes by what was applied. Revisions are unix seconds that grow with each run, whatever the clock says."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import get_context

import pytest
from django.db import ProgrammingError, connection, transaction
from django.db.models import Q
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.celery_tasks import recover_stale
from harbor_refresh.tasks.jobs import outcomes, report_target
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.report_target import NotedReport, fire_again
from harbor_refresh.tasks.jobs.running import reaper
from harbor_refresh.tasks.jobs.running.handle import Begun
from harbor_refresh.tasks.jobs.running.reaper import reap
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.models.terms import Failure, Terms
from tests import pages
from tests.integration.executions.deliveries.receiver import receiver
from tests.integration.executions.hook_requests import SECRET, post
from tests.integration.jobs.report_receiver import Request, Target
from tests.integration.jobs.sample_jobs import (
    Outbox,
    beats,
    begun,
    chained,
    job,
    named,
    recorded,
    rows,
    send_all,
    stands,
    tasks,
)
from tests.waiting import wait_for

ENDS = (Status.SUCCESS, Status.ERROR, Status.STOPPED)

pytestmark = pytest.mark.usefixtures("database", "core")

#: An end that was first reported long ago is fired again at once.
LONG_AGO = 60.0


@pytest.fixture
def reports(outbox: Outbox) -> list[NotedReport]:
    """The ends of five jobs, in the rows of these jobs. The process of their runs is dead."""
    recorded(*"abcde")
    since = time.time() - LONG_AGO
    found = [
        NotedReport(one.pk, one.job_id, "Success", one.status_revision, "", since)
        for one in Task.objects.order_by("pk")
    ]
    for one in found:
        Job.objects.filter(pk=one.task_id).update(state="ended", report=json.loads(one.text))
    return found


def unreported() -> list[str]:
    return sorted(Job.objects.filter(report__isnull=False).values_list("task__job_id", flat=True))


def ids(reports: Sequence[NotedReport]) -> list[int]:
    return [one.task_id for one in reports]


def answer(core: Target, report: NotedReport, status: int) -> None:
    core.answers[str(report.task_id)] = status


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "harbor_refresh"]


def statuses() -> list[str]:
    return [status for status, *_ in tasks().values()]


def next_run(outbox: Outbox) -> Begun:
    beats()
    if not outbox.messages:  # the thread that posts reports picked at the moment at which the job could be sent
        send_all()
    (sent,) = outbox.take()
    run = begun(sent)
    assert run
    return run


def ended(run: Begun, status: Status = Status.SUCCESS, result: object = 7, message: str = "") -> None:
    success = status == Status.SUCCESS
    assert take([Outcome(run.run, status, message, result=json.dumps(result) if success else None)])


def applied(request: Request) -> None:
    """What Harbor's core does with a request."""
    told = request.body["metadata"]
    report([Report(int(request.path.rpartition("/")[2]), told["status"], told["revision"])])


def is_settled() -> bool:
    return not unreported()


def test_an_end_is_posted_as_harbors_core_reads_it_and_its_task_is_left_to_the_core(
    core: Target, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    recorded("fails")
    before, (task,) = tasks(), Task.objects.all()
    ended(next_run(outbox), Status.ERROR, message="ValueError: no")
    wait_for(is_settled, "the report is taken")
    metadata = {"id": "fails", "status": "Error", "revision": task.status_revision}
    body = {"job_id": "fails", "status": "Error", "metadata": metadata, "status_message": "ValueError: no"}
    path = f"/service/notifications/tasks/{task.pk}"
    assert core.requests == [Request(path, "Harbor-Secret abc", "application/json", body)]
    assert tasks() == before
    assert rows() == {"fails": ("ended", 1)}
    assert ours(caplog) == []


def test_without_a_secret_no_authorization_is_sent(
    core: Target, settings: Settings, reports: list[NotedReport]
) -> None:
    settings.REFRESH_REPORT_AUTHORIZATION = ""
    assert report_target.settle(reports[:1]).taken == 1
    assert [one.authorization for one in core.requests] == [None]


def test_a_report_that_was_taken_is_forgotten(core: Target, reports: list[NotedReport]) -> None:
    answer(core, reports[2], 204)
    assert fire_again() == 5
    assert (sorted(core.asked()), unreported()) == (ids(reports), [])
    assert fire_again() == 0


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_refusal_that_may_pass_is_left_and_holds_up_no_other(
    status: int, core: Target, reports: list[NotedReport]
) -> None:
    for number in (0, 2):
        answer(core, reports[number], status)
    assert report_target.settle(reports) == (3, 2, f"it answered {status}")
    assert unreported() == ["a", "c"]
    assert fire_again() == 0
    assert unreported() == ["a", "c"]
    core.answers.clear()
    recover_stale()
    assert (unreported(), statuses()) == ([], ["Pending"] * 5)


@pytest.mark.parametrize(
    ("status", "location", "shown"),
    [
        *((status, "https://core/login", "'https://core/login'") for status in (301, 308)),
        (302, "", "''"),
        (302, "/" + "x" * 1_000, "'/" + "x" * 299 + "'"),
    ],
)
def test_a_redirect_is_not_followed_and_the_reason_says_what_to_change(
    status: int, location: str, shown: str, core: Target, reports: list[NotedReport]
) -> None:
    answer(core, reports[0], status)
    core.headers["Location"] = location
    why = f"it answered {status}, a redirect to {shown}, which is not followed: change REFRESH_REPORT_URL"
    assert report_target.settle(reports) == (4, 1, why)
    assert unreported() == ["a"]
    assert core.asked() == ids(reports)


def test_an_end_that_the_target_refuses_for_good_is_written_here(
    core: Target, reports: list[NotedReport], caplog: pytest.LogCaptureFixture
) -> None:
    """No other program writes it, and its execution would run for ever."""
    answer(core, reports[1], 410)
    assert fire_again() == 4
    assert (unreported(), statuses()) == ([], ["Pending", "Success", "Pending", "Pending", "Pending"])
    assert ours(caplog) == ["The hook does not want the report that job b is Success: the hook answered 410"]


def test_a_report_that_is_no_end_and_is_refused_for_good_is_written_nowhere(core: Target, outbox: Outbox) -> None:
    recorded("j")
    core.answers[str(Task.objects.get().pk)] = 400
    ended(next_run(outbox), Status.RUNNING)
    wait_for(is_settled, "the report is given up")
    assert (statuses(), rows()) == (["Pending"], {"j": ("running", 1)})


def test_a_task_that_the_target_does_not_know_is_given_up_after_five_minutes(
    core: Target, reports: list[NotedReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row may not be committed yet."""
    assert report_target.PATIENCE == 300
    answer(core, reports[1], 404)
    assert fire_again() == 4
    assert (unreported(), statuses()[1]) == (["b"], "Pending")
    monkeypatch.setattr(report_target, "PATIENCE", LONG_AGO / 2)
    fire_again()
    assert (unreported(), statuses()[1]) == ([], "Success")


def test_a_target_that_gives_no_answer_is_asked_no_more(core: Target, reports: list[NotedReport]) -> None:
    """The timeout is short from the third report on: the first two are answered, however slowly."""

    def shorten(_: Request) -> None:
        if len(core.requests) == 2:
            report_target.client().timeout = 0.3

    answer(core, reports[0], 500)
    core.hangs = str(reports[2].task_id)
    core.meanwhile = shorten
    settled = report_target.settle(reports)
    assert (unreported(), core.asked()) == ([*"acde"], ids(reports[:3]))
    assert settled.why_left.startswith("ReadTimeout: ")


def test_a_slow_target_takes_no_longer_than_a_call_may(
    core: Target, reports: list[NotedReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_target, "SECONDS", 0.3)
    core.delay = 0.2
    settled = report_target.settle(reports)
    asked = len(core.requests)
    assert asked in (1, 2), "none is sent once the time is over"
    assert unreported() == [*"abcde"[asked:]]
    assert settled == (asked, 5 - asked, "it answers too slowly")


def test_one_process_at_a_time_waits_for_a_slow_target(core: Target, reports: list[NotedReport]) -> None:
    """All processes of the ticks would wait for it, and the refreshes for them."""
    of_another: list[int] = []
    core.meanwhile = lambda _: len(core.requests) == 1 and of_another.append(fire_again())
    assert (fire_again(), of_another) == (5, [0])
    assert sorted(core.asked()) == ids(reports), "each is posted once"


def test_more_reports_than_a_pass_takes_are_fired_in_turns(
    core: Target, reports: list[NotedReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are refused each time hold up no other: a pass takes some at random."""
    monkeypatch.setattr(report_target, "PAGE", 1)
    for one in reports[:2]:
        answer(core, one, 503)
    for _ in range(200):
        if unreported() == ["a", "b"]:
            break
        fire_again()
    assert unreported() == ["a", "b"]


@pytest.mark.parametrize("status", ["Success", "Stopped"])
def test_a_report_that_its_task_has_by_now_is_not_fired_again(
    status: str, core: Target, reports: list[NotedReport]
) -> None:
    """The answer of the target was lost, or another program has reported."""
    revision = reports[0].revision
    stands("a", status, revision)
    stands("b", "Pending", revision + 1)
    stands("c", "Running", revision)
    fire_again()
    assert sorted(core.asked()) == ids(reports[2:])


def test_a_report_is_left_to_its_process_for_some_seconds(core: Target, reports: list[NotedReport]) -> None:
    Job.objects.filter(task__job_id="a").update(report=json.loads(replace(reports[0], since=time.time()).text))
    fire_again()
    assert sorted(core.asked()) == ids(reports[1:])


def test_a_report_that_its_process_could_not_post_is_fired_again_by_any_worker_with_the_same_revision(
    core: Target, outbox: Outbox, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_target, "LATE_SECONDS", -1.0)
    recorded("j")
    run = next_run(outbox)
    core.answers[str(run.run.task_id)] = 503
    ended(run)
    line = "1 turns of jobs cannot be reported, trying again: it answered 503"
    wait_for(lambda: line in ours(caplog), "the process has posted")
    core.answers.clear()
    assert fire_again() == 1
    assert [one.body["metadata"]["revision"] for one in core.requests] == [run.run.revision] * 2


def test_an_end_waits_in_its_row_while_it_is_not_taken(core: Target, outbox: Outbox) -> None:
    """So a message that comes twice runs nothing."""
    recorded("j")
    core.answers[str(Task.objects.get().pk)] = 503
    (sent,) = outbox.messages
    run = next_run(outbox)
    ends = [Outcome(run.run, Status.SUCCESS)]
    assert len(take(ends)) == 1
    assert (take(ends), begun(sent), rows()) == ([], None, {"j": ("ended", 1)})


# chains and revisions: another process applies the reports, before it answers, later, or never


@pytest.fixture
def first(outbox: Outbox) -> Begun:
    """The first job of a chain of three runs."""
    chained("a", "b", "c")
    return next_run(outbox)


def goes_on(status: Status, outbox: Outbox) -> None:
    """The chain has gone on as its first job has ended."""
    if status == Status.SUCCESS:
        wait_for(lambda: outbox.messages, "the next job is sent")
        assert next_run(outbox).args == [7, "b"]
        assert rows()["c"] == ("waiting", 0)
    else:
        assert outbox.messages == []
        ends = [(tasks()[one][0], named(tasks()[one][3])) for one in "bc"]
        assert ends == [("Stopped", f"it needs a.job (task a), which has ended as {status}")] * 2


def test_a_core_with_a_role_of_its_own_ends_jobs_by_the_grant_of_the_page(first: Begun) -> None:
    """It needs no right for the note of a failure."""
    (grant,) = re.findall(
        r"`(GRANT SELECT, UPDATE ON execution_job, execution_need TO core;)`",
        pages.read("docs/howto/job_service_hook.md"),
    )
    its = Job.objects.select_related("task").get(pk=first.run.task_id)
    Terms.objects.create(execution_id=its.task.execution_id, vendor_type="SCAN", stops_on_failure=True)
    end = "UPDATE task SET status_code = 3, status = 'Error', end_time = now() WHERE id = %s"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE ROLE core; GRANT SELECT, UPDATE ON task TO core; SET ROLE core")
        with (
            pytest.raises(ProgrammingError, match="permission denied for table execution_need"),
            transaction.atomic(),
        ):
            cursor.execute(end, [its.pk])
        cursor.execute(f"RESET ROLE; {grant} SET ROLE core")
        cursor.execute(end, [its.pk])
        cursor.execute("RESET ROLE")
        its.refresh_from_db()
        assert (its.state, Failure.objects.count()) == ("ended", 1)
        transaction.set_rollback(True)


@pytest.mark.parametrize(("answer", "is_applied"), [(200, True), (404, True), (400, False)])
@pytest.mark.parametrize("status", ENDS)
def test_an_end_that_is_applied_before_it_is_answered_or_refused_for_good_moves_the_chain_at_once(  # noqa: PLR0917
    status: Status, answer: int, is_applied: bool, first: Begun, outbox: Outbox, core: Target
) -> None:
    core.answers[str(first.run.task_id)] = answer
    if is_applied:
        core.meanwhile = applied
    ended(first, status)
    wait_for(lambda: tasks()["a"][0] == status, "it to be applied, by the target or here")
    if answer == 404:  # it is not known to be taken, so the next pass sends what is behind it
        send_all()
    goes_on(status, outbox)


@pytest.mark.parametrize("answer", [200, 404])
def test_an_end_that_is_not_applied_moves_no_chain_whatever_the_target_answers(
    answer: int, first: Begun, outbox: Outbox, core: Target
) -> None:
    core.answers[str(first.run.task_id)] = answer
    ended(first)
    wait_for(lambda: core.requests, "the target has the report")
    send_all()
    assert (outbox.messages, [tasks()[one][0] for one in "bc"]) == ([], ["Pending"] * 2)
    report([Report(first.run.task_id, Status.SUCCESS, first.run.revision)])
    send_all()
    goes_on(Status.SUCCESS, outbox)


@pytest.mark.parametrize("seconds", [100, 0, -1_000])
def test_another_run_has_the_second_in_which_it_was_decided_and_always_a_higher_revision(
    seconds: int, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats()
    recorded("j", max_attempts=9)
    run = next_run(outbox)
    revision = run.run.revision
    for cause in ("a retry", "a dead worker", "a retry by hand"):
        now = max(revision, int(time.time())) + seconds
        monkeypatch.setattr(report_target.time, "time", lambda now=now: now)
        if cause == "a retry":
            take([Outcome(run.run, Status.SCHEDULED, "no route", delay=0)])
            Job.objects.update(not_before=None)
            send_all()
        elif cause == "a dead worker":
            Node.objects.all().delete()
            assert reaper.release_runs_without_worker() == 1
            beats()
        else:
            ended(run, Status.ERROR)
            report([Report(run.run.task_id, "Error", run.run.revision)])
            assert retry_failed(Task.objects.get().execution_id) == 1
        run = next_run(outbox)
        assert run.run.revision == max(revision + 1, now)
        revision = run.run.revision


@pytest.mark.parametrize("why", ["its worker is dead", "it was silent for a day", "its message cannot be made"])
def test_an_end_that_no_run_reports_has_the_revision_of_the_run(
    why: str, outbox: Outbox, core: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a lower one the target would ignore it, and the task would run for ever."""
    core.meanwhile = applied
    beats()
    recorded("j", max_attempts=1)
    run = next_run(outbox).run
    if why == "its worker is dead":
        Node.objects.all().delete()
        reaper.release_runs_without_worker()
    elif why == "it was silent for a day":
        Job.objects.update(heard_at="2020-01-01T00:00Z")
        assert reap().failed == 1
    else:
        Job.objects.update(state="sent", run=0, node=None, process=None)
        take([Outcome(outcomes.Run(run.task_id, "j", 0), Status.ERROR, why)])
    wait_for(is_settled, "the end is reported")
    assert tasks()["j"][:2] == ("Error", run.revision)


def test_without_a_report_target_revisions_count_and_with_one_they_go_on_in_unix_seconds(
    settings: Settings, outbox: Outbox
) -> None:
    url, settings.REFRESH_REPORT_URL = settings.REFRESH_REPORT_URL, ""
    beats()
    recorded("j", max_attempts=9)
    run = next_run(outbox).run
    assert (run.revision, report_target.next_revision(0)) == (0, 1)
    settings.REFRESH_REPORT_URL = url
    reaper.release(reaper.running(Q()))
    again = next_run(outbox).run
    assert again.revision == pytest.approx(time.time(), abs=300)
    settings.REFRESH_REPORT_URL = ""
    reaper.release(reaper.running(Q()))
    assert next_run(outbox).run.revision == again.revision + 1


def test_without_a_target_the_reports_that_are_left_are_applied_here(
    settings: Settings, reports: list[NotedReport]
) -> None:
    settings.REFRESH_REPORT_URL = ""
    assert fire_again() == 5
    assert (unreported(), statuses()) == ([], ["Success"] * 5)


def test_our_own_hook_as_the_target_gives_the_tasks_of_a_system_without_a_target(
    core: Target, settings: Settings, outbox: Outbox
) -> None:
    """A job that is tried again, ends as Error, is retried by hand and succeeds."""
    settings.REFRESH_HARBOR_SECRET = SECRET

    def forward(request: Request) -> None:
        word = request.path.rpartition("/")[2]
        core.answers[word] = post(request.body, word).status_code

    core.meanwhile = forward
    beats()
    execution = recorded("j")
    told, revisions = [], []
    for end, message in ((Status.SCHEDULED, "no route"), (Status.ERROR, "broken"), (Status.SUCCESS, "")):
        run = next_run(outbox).run
        revisions.append(run.revision)
        for outcome in (Outcome(run, Status.RUNNING), Outcome(run, end, message)):
            assert take([outcome])
            wait_for(is_settled, "the report is taken")
            told.append(tasks()["j"])
        assert retry_failed(execution.pk) == (end == Status.ERROR)
    one, two, three = revisions
    assert one < two < three == job("j").revision
    assert told == [
        ("Running", one, 0, ""),
        ("Scheduled", two, 1, "no route"),
        ("Running", two, 1, "no route"),
        ("Error", two, 1, "broken"),
        ("Running", three, 2, "tried again"),
        ("Success", three, 2, ""),
    ]


def test_a_forked_child_posts_on_a_connection_of_its_own() -> None:
    """A worker's main process posts the end of a run whose process it has killed; then its pool forks another."""
    with receiver() as its_core:
        report_target.client().post(its_core.url)
        child = get_context("fork").Process(target=lambda: report_target.client().post(its_core.url))
        child.start()
        child.join(60)
        assert len({one.port for one in its_core.received}) == len(its_core.received) == 2
