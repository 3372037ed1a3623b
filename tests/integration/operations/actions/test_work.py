"""The jobs of an action: ranges of the executions there were; and what stops them, kills them or is refused."""

from dataclasses import replace
from time import process_time
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from harbor_refresh.executions.models import AuditEntry, Execution
from harbor_refresh.executions.news.audit import Word
from harbor_refresh.executions.queries.chosen_pages import BULK
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.broker.channels import waiting
from harbor_refresh.tasks.jobs.live_workers import release_runs_without_worker
from harbor_refresh.tasks.models.job import Job, JobState, Node
from harbor_refresh.tasks.operations import bulk
from harbor_refresh.tasks.operations.bulk import VERBS
from tests import servers
from tests.integration.concurrency import in_background, wait_until
from tests.integration.jobs.sample_jobs import database_port, send_all, tasks_refuse, tasks_refuse_no_more
from tests.integration.operations.actions.sample_bulk import statuses, with_jobs
from tests.integration.sample_actions import asked, result, work_off
from tests.integration.sample_executions import delete, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis", "small_ranges")


class Died(SystemExit):
    pass


def act_is(monkeypatch: pytest.MonkeyPatch, verb: Word, act: Any) -> None:
    monkeypatch.setattr(bulk, "VERBS", {verb: replace(VERBS[verb], act=act)})


def its_process_is_dead() -> None:
    """Another worker has noticed it, and sends its job again."""
    Node.objects.all().delete()
    release_runs_without_worker()
    send_all()


def test_an_action_is_an_execution_whose_jobs_do_a_range_each() -> None:
    with_jobs(10)
    action = asked(Word.STOP, vendor_type="SCAN")
    asked_for = {"verb": "stop", "filter": {"vendor_type": "SCAN"}, "by": "a test", "from": "api"}
    assert (action.vendor_type, action.extra_attrs) == (BULK, asked_for)
    progress = []
    while result(action)["status"] == "Running":
        progress.append((action.progress().share, statuses().get("Stopped", 0)))
        work_off(1)
    assert progress == [(0.0, 0), (0.2, 3), (0.4, 6), (0.6, 9), (0.8, 10)]
    assert result(action) == {"status": "Success", "changed": 10}
    ((kind, target, detail),) = AuditEntry.objects.values_list("kind", "target", "detail")
    assert (kind, target, detail) == ("executions", str(action.pk), "vendor type SCAN")


def test_an_execution_that_is_created_after_the_request_is_not_touched() -> None:
    with_jobs(4)
    action = asked(Word.STOP)
    later, _ = made()
    work_off(1)
    latest, _ = made()
    work_off()
    assert result(action) == {"status": "Success", "changed": 4}
    assert [status_of(one) for one in (later, latest)] == ["Running", "Running"]


@pytest.mark.parametrize("verb", [Word(one) for one in VERBS])
def test_an_execution_that_is_deleted_meanwhile_is_skipped(verb: Word, monkeypatch: pytest.MonkeyPatch) -> None:
    executions = with_jobs(3)

    def deleted_before(ids: Any) -> Any:
        delete([executions[1].pk])
        return VERBS[verb].act(ids)

    act_is(monkeypatch, verb, deleted_before)
    action = asked(verb)
    work_off()
    found = result(action)
    assert (found.pop("status"), sum(found.values())) == ("Success", 3)
    assert found["skipped"] >= 1
    assert not Execution.objects.filter(pk=executions[1].pk).exists()


def test_a_filter_that_chooses_nothing_is_done_and_so_is_an_empty_table() -> None:
    on_nothing = asked(Word.STOP)
    work_off()
    with_jobs(5)
    action = asked(Word.DELETE, vendor_type="NONE")
    work_off()
    assert [result(one) for one in (on_nothing, action)] == [{"status": "Success"}] * 2


def test_an_action_leaves_other_actions_alone_unless_the_filter_names_them() -> None:
    with_jobs(4)
    first = asked(Word.STOP)
    second = asked(Word.STOP)
    work_off()
    assert [result(one)["status"] for one in (first, second)] == ["Success", "Success"]
    waits = asked(Word.STOP)
    by_name = asked(Word.STOP, vendor_type=BULK, statuses=("Running",))
    Job.objects.filter(task__execution=waits).update(state=JobState.WAITING, not_before=timezone.now())
    work_off()
    assert [result(one)["status"] for one in (waits, by_name)] == ["Stopped", "Success"]


def test_an_action_has_one_message_among_the_ticks_at_a_time() -> None:
    """So a backlog of jobs is not before it, and ticks are sent while it waits."""
    with_jobs(10)
    asked(), asked()
    assert waiting(TICKS) == 2


# stopping, and going on


def test_an_action_that_is_stopped_leaves_the_rest_and_is_resumed_where_it_ended() -> None:
    with_jobs(10)
    action = asked(Word.STOP)
    work_off(2)
    action.stop()
    work_off()
    assert result(action) == {"status": "Stopped", "changed": 6}
    assert statuses() == {"Stopped": 6, "Running": 4}
    action.resume_stopped()
    work_off()
    assert result(action) == {"status": "Success", "changed": 10}


def test_a_range_whose_process_died_is_done_again_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with_jobs(7)
    lives = iter([True, False, True, True])

    def act(ids: Any) -> Any:
        done = VERBS[Word.STOP].act(ids)
        if not next(lives, True):
            raise Died
        return done

    act_is(monkeypatch, Word.STOP, act)
    action = asked(Word.STOP)
    with pytest.raises(Died):
        work_off()
    its_process_is_dead()
    work_off()
    assert result(action) == {"status": "Success", "changed": 7}


# trouble


def test_executions_that_fail_hold_up_no_other_and_a_retry_tries_them_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executions = with_jobs(9)
    bad = executions[4]
    tasks_refuse(f"new.execution_id = {bad.pk}")
    action = asked(Word.STOP)
    work_off()
    assert result(action) == {"status": "Error", "changed": 8, "failed": 1}
    assert statuses() == {"Stopped": 8, "Running": 1}
    assert caplog.messages.count(f"Could not stop execution {bad.pk}: no more") == 2, "it was tried once more"
    tasks_refuse_no_more()
    action.retry_failed()
    work_off()
    assert result(action) == {"status": "Success", "changed": 9}
    assert statuses() == {"Stopped": 9}


def test_a_retry_leaves_an_execution_that_the_filter_does_not_choose_any_more() -> None:
    changed, same = with_jobs(2)
    Execution.objects.update(trigger="NIGHTLY")
    tasks_refuse("new.vendor_type = 'SCAN'")
    action = asked(Word.STOP, trigger="NIGHTLY")
    work_off()
    assert result(action) == {"status": "Error", "failed": 2}
    tasks_refuse_no_more()
    Execution.objects.filter(pk=changed.pk).update(trigger="MANUAL")
    action.retry_failed()
    work_off()
    assert result(action) == {"status": "Success", "changed": 1}
    assert (status_of(changed), status_of(same)) == ("Running", "Stopped")


def test_a_hundred_thousand_refused_executions_are_added_up_in_a_moment() -> None:
    done, began = bulk.Done(), process_time()
    for pk in range(100_000):
        done += bulk.Done(failed={pk: "no more"})
        if process_time() - began > 5:
            break
    assert len(done.failed) == 100_000


def patient_work() -> None:
    """On a connection that would wait for a lock for longer than the test waits."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50s'")
    work_off()


def test_locked_executions_delay_their_portion_briefly_and_fail_alone(database: str) -> None:
    executions = with_jobs(3)
    locked = executions[1]
    action = asked(Word.STOP)
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE", [locked.pk])
        with in_background(patient_work) as finish:
            wait_until(lambda: statuses().get("Stopped") == 1, "the first is done although the second is locked")
            other.rollback()
            finish()
    assert result(action) == {"status": "Success", "changed": 3}


@pytest.mark.parametrize("at", ["page_after", "_commit"])
def test_a_database_that_goes_down_fails_no_execution_and_the_action_goes_on(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_jobs(7)
    action = asked(Word.STOP)
    step = getattr(bulk, at)
    calls: list[bool] = []
    with database_port() as port:

        def down(*args: Any, **options: Any) -> Any:
            calls.append(True)
            if len(calls) > 1:
                return step(*args, **options)
            port.down()
            try:
                return step(*args, **options)
            finally:
                port.back()

        monkeypatch.setattr(bulk, at, down)
        work_off()
    assert (len(calls), result(action)["status"]) == (1, "Running")
    Job.objects.filter(not_before__isnull=False).update(not_before=timezone.now())
    send_all()
    work_off()
    assert result(action) == {"status": "Success", "changed": 7}
