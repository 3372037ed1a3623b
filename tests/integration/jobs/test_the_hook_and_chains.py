"""Chains and revisions of jobs that report over the hook: another process applies the reports, before it answers,
later, or never. Revisions are unix seconds that grow with each run, whatever the clock says."""

import json
import re
import time

import pytest
from django.db import ProgrammingError, connection, transaction
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.jobs import hook as over_http
from harbor_refresh.tasks.jobs import nodes, sender, turns
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.reaper import reap
from harbor_refresh.tasks.jobs.turns import Begun, Turn, take
from harbor_refresh.tasks.models.job import Job, Node
from tests import pages
from tests.integration.executions.hook_requests import SECRET, post
from tests.integration.jobs.hook_target import Request, Target
from tests.integration.jobs.sample_jobs import Outbox, beats, begun, chained, job, recorded, rows, tasks
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "core")

BROKEN = "a job before it in its chain did not succeed"
ENDS = (Status.SUCCESS, Status.ERROR, Status.STOPPED)


@pytest.fixture
def first(outbox: Outbox) -> Begun:
    """The first job of a chain of three runs."""
    beats()
    chained("a", "b", "c")
    return next_run(outbox)


def next_run(outbox: Outbox) -> Begun:
    (sent,) = outbox.take()
    run = begun(sent)
    assert run
    return run


def ended(run: Begun, status: Status = Status.SUCCESS, result: object = 7) -> None:
    assert take([Turn(run.run, status, result=json.dumps(result) if status == Status.SUCCESS else None)])


def applied(request: Request) -> None:
    """What Harbor's core does with a request."""
    told = request.body["metadata"]
    report([Report(int(request.path.rpartition("/")[2]), told["status"], told["revision"])])


def is_settled() -> bool:
    return not Job.objects.filter(report__isnull=False).exists()


def goes_on(status: Status, outbox: Outbox) -> None:
    """The chain has gone on as its first job has ended."""
    if status == Status.SUCCESS:
        wait_for(lambda: outbox.messages, "the next job is sent")
        assert next_run(outbox).args == [7, "b"]
        assert rows()["c"] == ("waiting", 0)
    else:
        assert outbox.messages == []
        assert [(tasks()[one][0], tasks()[one][3]) for one in "bc"] == [("Stopped", BROKEN)] * 2


def test_a_core_with_a_role_of_its_own_ends_jobs_by_the_grant_of_the_page(first: Begun) -> None:
    (grant,) = re.findall(r"`(GRANT SELECT, UPDATE ON execution_job TO core;)`", pages.read("docs/jobs.md"))
    end = "UPDATE task SET status_code = 3, status = 'Success', end_time = now() WHERE id = %s"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE ROLE core; GRANT SELECT, UPDATE ON task TO core; SET ROLE core")
        with (
            pytest.raises(ProgrammingError, match="permission denied for table execution_job"),
            transaction.atomic(),
        ):
            cursor.execute(end, [first.run.task_id])
        cursor.execute(f"RESET ROLE; {grant} SET ROLE core")
        cursor.execute(end, [first.run.task_id])
        cursor.execute("RESET ROLE")
        assert Job.objects.get(pk=first.run.task_id).state == "ended"
        transaction.set_rollback(True)


@pytest.mark.parametrize("status", ENDS)
def test_a_report_that_is_applied_before_it_is_answered_moves_the_chain_at_once(
    status: Status, first: Begun, outbox: Outbox, core: Target
) -> None:
    core.meanwhile = applied
    ended(first, status)
    wait_for(is_settled, "the report is taken")
    goes_on(status, outbox)


@pytest.mark.parametrize("status", ENDS)
def test_an_end_that_the_target_refuses_for_good_moves_the_chain_at_once(
    status: Status, first: Begun, outbox: Outbox, core: Target
) -> None:
    core.answers[str(first.run.task_id)] = 400
    ended(first, status)
    wait_for(is_settled, "the report is given up")
    assert tasks()["a"][0] == status
    goes_on(status, outbox)


@pytest.mark.parametrize("is_applied", ["before the answer", "after the answer"])
@pytest.mark.parametrize("answer", [200, 202, 404, 503, 302, "none"])
@pytest.mark.parametrize("status", ENDS)
def test_whatever_the_hook_answers_a_chain_goes_by_what_was_applied(  # noqa: PLR0917
    status: Status,
    answer: int | str,
    is_applied: str,
    first: Begun,
    outbox: Outbox,
    core: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if answer == "none":
        monkeypatch.setattr(pacing, "REPORT_TIMEOUT_SECONDS", 0.3)
        over_http.hook.cache_clear()
        core.hangs = str(first.run.task_id)
    else:
        core.answers[str(first.run.task_id)] = int(answer)
    if is_applied == "before the answer":
        core.meanwhile = applied
    ended(first, status)
    if is_applied == "before the answer":
        wait_for(lambda: tasks()["a"][0] == status, "the target has applied it")
    else:
        wait_for(lambda: core.requests, "the target has the report")
        sender.send_all()
        assert (outbox.messages, [tasks()[one][0] for one in "bc"]) == ([], ["Pending"] * 2)
        report([Report(first.run.task_id, status, first.run.revision)])
    sender.send_all()
    goes_on(status, outbox)


def test_a_run_that_was_taken_for_dead_hands_on_nothing(first: Begun, outbox: Outbox, core: Target) -> None:
    nodes.release([first.run])
    second = next_run(outbox)
    assert take([Turn(first.run, Status.SUCCESS, result='"of run 1"')]) == []
    core.meanwhile = applied
    ended(second, result="of run 2")
    wait_for(lambda: outbox.messages, "the next job is sent")
    assert next_run(outbox).args == ["of run 2", "b"]


def test_a_job_begins_in_the_second_in_which_it_was_recorded(outbox: Outbox) -> None:
    beats()
    before = int(time.time())
    recorded("j")
    revision = next_run(outbox).run.revision
    assert before <= revision <= time.time()
    assert tasks()["j"][1] == revision


@pytest.mark.parametrize("seconds", [100, 0, -1_000])
def test_another_run_has_the_second_in_which_it_was_decided_and_always_a_higher_revision(
    seconds: int, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats()
    recorded("j", max_attempts=9)
    run = next_run(outbox)
    revision = run.run.revision
    for turn in ("a retry", "a dead worker", "a retry by hand"):
        now = max(revision, int(time.time())) + seconds
        monkeypatch.setattr(turns.time, "time", lambda now=now: now)
        if turn == "a retry":
            take([Turn(run.run, Status.SCHEDULED, "no route", delay=0)])
            Job.objects.update(not_before=None)
            sender.send_all()
        elif turn == "a dead worker":
            Node.objects.all().delete()
            assert nodes.release_runs_without_node() == 1
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
        nodes.release_runs_without_node()
    elif why == "it was silent for a day":
        Job.objects.update(heard_at="2020-01-01T00:00Z")
        assert reap().failed == 1
    else:
        Job.objects.update(state="sent", run=0, node=None, process=None)
        take([Turn(turns.Run(run.task_id, "j", 0), Status.ERROR, why, state=turns.State.SENT)])
    wait_for(is_settled, "the end is reported")
    assert tasks()["j"][:2] == ("Error", run.revision)


def test_without_a_hook_revisions_count_and_with_one_they_go_on_in_unix_seconds(
    settings: Settings, outbox: Outbox
) -> None:
    url, settings.REFRESH_REPORT_URL = settings.REFRESH_REPORT_URL, ""
    beats()
    recorded("j", max_attempts=9)
    run = next_run(outbox).run
    assert (run.revision, over_http.next_revision(0)) == (0, 1)
    settings.REFRESH_REPORT_URL = url
    nodes.release([run])
    again = next_run(outbox).run
    assert again.revision == pytest.approx(time.time(), abs=300)
    settings.REFRESH_REPORT_URL = ""
    nodes.release([again])
    assert next_run(outbox).run.revision == again.revision + 1


def test_every_repeat_of_a_report_has_the_same_revision(
    core: Target, first: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over_http, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(over_http, "LATE_SECONDS", -1.0)
    core.answers[str(first.run.task_id)] = 503
    ended(first)
    wait_for(lambda: len(core.requests) == 2, "the process posts again")
    core.answers.clear()
    assert over_http.fire_again() == 1
    assert [one.body["metadata"]["revision"] for one in core.requests] == [first.run.revision] * 3


def test_our_own_hook_as_the_target_gives_the_tasks_of_a_system_without_a_hook(
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
    told = []

    def turn(run: Begun, status: Status, message: str = "") -> None:
        assert take([Turn(run.run, status, message)])
        wait_for(is_settled, "the report is taken")
        told.append(tasks()["j"])

    run = next_run(outbox)
    first = run.run.revision
    turn(run, Status.RUNNING)
    turn(run, Status.SCHEDULED, "no route")
    sender.send_all()
    run = next_run(outbox)
    again = run.run.revision
    turn(run, Status.RUNNING)
    turn(run, Status.ERROR, "broken")
    assert retry_failed(execution.pk) == 1
    run = next_run(outbox)
    third = run.run.revision
    turn(run, Status.RUNNING)
    turn(run, Status.SUCCESS)
    assert first < again < third == job("j").revision
    assert told == [
        ("Running", first, 0, ""),
        ("Scheduled", again, 1, "no route"),
        ("Running", again, 1, "no route"),
        ("Error", again, 1, "broken"),
        ("Running", third, 2, "tried again"),
        ("Success", third, 2, ""),
    ]
