"""The work on an action: in slices, by one process, up to the executions there were; and what stops it."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from harbor_refresh.executions.actions.bulk import find, stop_action
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.executions.models import Action, Execution
from harbor_refresh.executions.models.operations import Origin, Verb
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.broker.pooled import waiting
from harbor_refresh.tasks.celery_tasks import act, recover_stale
from harbor_refresh.tasks.operations import bulk, bulk_slice
from harbor_refresh.tasks.operations.bulk import ask_and_wake, wake, work
from harbor_refresh.tasks.operations.bulk_verbs import VERBS
from tests import servers
from tests.integration.concurrency import Pause, at_once, in_background, wait_until
from tests.integration.database_state import rows
from tests.integration.jobs.sample_jobs import database_port
from tests.integration.operations.actions.sample_bulk import slices, statuses, with_jobs
from tests.integration.sample_actions import asked, lease_runs_out, result
from tests.integration.sample_executions import made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis", "small_pages")

Filter = bulk.Filter


def test_a_slice_whose_time_is_up_leaves_the_rest_to_the_next() -> None:
    with_jobs(10)
    action = asked(Verb.STOP)
    states = [(one.state, one.done, one.holder) for one in slices(action, seconds=0)]
    assert states == [
        ("running", 3, None),
        ("running", 6, None),
        ("running", 9, None),
        ("done", 10, None),
    ]
    assert result(action) == {"state": "done", "changed": 10}
    assert (action.total, action.attempts) == (10, 0)
    assert statuses() == {"Stopped": 10}


def test_an_execution_that_is_created_after_the_request_is_not_touched() -> None:
    with_jobs(4)
    action = asked(Verb.STOP)
    later, _ = made()
    assert work(seconds=0) is not None
    latest, _ = made()
    assert [one.state for one in slices(action)][-1:] == ["done"]
    assert result(action) == {"state": "done", "changed": 4}
    assert [status_of(one) for one in (later, latest)] == ["Running", "Running"]


def test_the_cursor_passes_each_execution_once_although_the_work_changes_what_the_filter_asks_for() -> None:
    executions = with_jobs(7)
    action = asked(Verb.STOP, statuses=("Running",))
    work(seconds=0)
    first = executions[0]
    first.tasks.update(status="Running", status_code=2, end_time=None)  # it runs again behind the cursor
    Execution.objects.filter(pk=first.pk).update(status="Running", end_time=None)
    [*_] = slices(action)
    assert result(action) == {"state": "done", "changed": 7}
    assert status_of(first) == "Running"


@pytest.mark.parametrize("verb", list(Verb))
def test_an_execution_that_is_deleted_meanwhile_is_skipped(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    executions = with_jobs(3)
    whole = VERBS[verb]

    def deleted_before(ids: Any) -> Any:
        delete([executions[1].pk])
        return whole.act(ids)

    monkeypatch.setattr(bulk_slice, "VERBS", {verb: replace(whole, act=deleted_before)})
    action = asked(verb)
    work(seconds=None)
    found = result(action)
    assert (found["state"], action.done, action.failed) == ("done", 3, 0)
    assert found.get("skipped", 0) >= 1
    assert not Execution.objects.filter(pk=executions[1].pk).exists()


def test_a_filter_that_chooses_nothing_is_done_at_once() -> None:
    with_jobs(5)
    action = asked(Verb.DELETE, vendor_type="NONE")
    work(seconds=None)
    assert (result(action), action.total, action.progress) == ({"state": "done"}, 0, 1.0)


def test_an_action_on_an_empty_table_is_done() -> None:
    action = asked(Verb.STOP)
    work(seconds=None)
    assert (result(action), action.highest) == ({"state": "done"}, 0)


# two processes


def test_of_two_workers_with_one_action_one_works() -> None:
    with_jobs(6)
    action = asked(Verb.STOP)
    with Pause("deciding") as pause, in_background(lambda: work(action.pk, seconds=None)) as finish:
        pause.wait_until_reached()
        before = rows(Action)
        assert (work(action.pk, seconds=None), work(seconds=None)) == (None, None)
        assert rows(Action) == before
        pause.go_on.set()
        assert finish().state == "done"
    assert result(action) == {"state": "done", "changed": 6}


def test_a_process_that_stood_still_past_its_lease_writes_nothing_when_it_goes_on() -> None:
    executions = with_jobs(6)
    action = asked(Verb.STOP, vendor_type="SCAN")
    with Pause("deciding") as pause, in_background(lambda: work(action.pk, seconds=None)) as finish:
        pause.wait_until_reached()
        lease_runs_out(action)
        assert stop_action(action.pk).state == "stopped"
        before = rows(Action)
        pause.go_on.set()
        assert finish().state == "stopped"
    assert rows(Action) == before
    assert statuses() == {"Running": len(executions)}


def test_a_page_whose_process_died_is_done_again_and_counted_once() -> None:
    with_jobs(7)
    action = asked(Verb.STOP)
    work(seconds=0)

    class Died(BaseException):
        pass

    def die() -> bool:
        raise Died

    with pytest.raises(Died):
        work(seconds=None, on_page=die)
    assert (find(action.pk).done, work(seconds=None)) == (6, None)
    lease_runs_out(action)
    [*_] = slices(find(action.pk))
    assert result(action) == {"state": "done", "changed": 7}


def test_executions_that_kill_their_process_fail_the_action_after_five_and_are_done_alone_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    executions = with_jobs(9)
    poison = executions[4].pk
    tried: list[list[int]] = []

    class Died(BaseException):
        pass

    def killed(ids: Any) -> Any:
        tried.append(list(ids))
        if poison in ids:
            raise Died
        return VERBS[Verb.STOP].act(ids)

    monkeypatch.setattr(bulk_slice, "VERBS", {Verb.STOP: replace(VERBS[Verb.STOP], act=killed, page=3)})
    action = asked(Verb.STOP)
    for _ in range(8):
        with pytest.raises(Died):
            work(seconds=None)
        lease_runs_out(action)
    work(seconds=None)
    page = [one.pk for one in executions]
    assert tried == [page[:3], page[3:6], page[3:6], [page[3]], [page[4]], page[4:7], *([[page[4]]] * 4)]
    assert result(action) == {"state": "failed", "changed": 4}
    assert action.error == f"5 processes ended while they worked on the executions after {page[3]}"
    assert f"Action {action.pk} has failed: {action.error}" in caplog.messages


# stopping


def test_an_action_that_is_asked_to_stop_ends_with_its_page() -> None:
    with_jobs(10)
    action = asked(Verb.STOP)
    with Pause("deciding") as pause, in_background(lambda: work(action.pk, seconds=None)) as finish:
        pause.wait_until_reached()
        assert stop_action(action.pk).state == "running"
        pause.go_on.set()
        assert finish().state == "stopped"
    assert result(action) == {"state": "stopped", "changed": 3}
    assert statuses() == {"Stopped": 3, "Running": 7}
    assert work(seconds=None) is None


def test_a_question_to_stop_that_no_process_saw_is_seen_by_the_next() -> None:
    with_jobs(4)
    action = asked(Verb.STOP)
    work(seconds=0)
    Action.objects.filter(pk=action.pk).update(stop_asked=True)
    work(seconds=None)
    assert result(action) == {"state": "stopped", "changed": 3}


# trouble


def test_a_filter_that_this_release_cannot_read_fails_the_action() -> None:
    action = asked(Verb.STOP)
    Action.objects.filter(pk=action.pk).update(filter={"colour": "red"})
    work(seconds=None)
    assert result(action) == {"state": "failed"}
    assert "colour" in action.error


def patient_work() -> Action | None:
    """On a connection that would wait for a lock for longer than the test waits."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50s'")
    return work(seconds=None)


def test_locked_executions_delay_their_page_briefly_and_fail_alone(database: str) -> None:
    executions = with_jobs(3)
    locked = executions[1]
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE", [locked.pk])
        action = asked(Verb.STOP)
        with in_background(patient_work) as finish:
            wait_until(lambda: find(action.pk).done == 1, "the first is done although the second is locked")
            other.rollback()
            finish()
    assert result(action) == {"state": "done", "changed": 3}
    assert statuses() == {"Stopped": 3}


def test_a_database_that_goes_away_fails_no_execution_and_the_action_goes_on() -> None:
    with_jobs(7)
    action = asked(Verb.STOP)
    with database_port() as port:

        def away() -> bool:
            port.away()
            return False

        with pytest.raises(DatabaseAway):
            work(seconds=None, on_page=away)
        port.back()
    lease_runs_out(action)
    [*_] = slices(find(action.pk))
    assert result(action) == {"state": "done", "changed": 7}


# ticks


def test_an_action_sends_its_tick_after_the_commit_and_a_crowd_of_them_sends_few() -> None:
    def ask() -> Action:
        return ask_and_wake(Verb.STOP, Filter(vendor_type="SCAN"), by="", origin=Origin.API)

    with transaction.atomic():
        ask()
        assert waiting(TICKS) == 0
    assert waiting(TICKS) == 1
    for _ in range(20):
        ask()
    assert waiting(TICKS) <= 4


def test_no_tick_is_sent_while_a_worker_works_on_an_action_nor_for_a_terminal(redis: Any) -> None:
    asked(Verb.STOP, origin=Origin.TERMINAL)
    wake()
    assert waiting(TICKS) == 0
    with_jobs(4)
    asked(Verb.STOP)
    with Pause("deciding") as pause, in_background(work) as finish:
        pause.wait_until_reached()
        wake()
        assert waiting(TICKS) == 0
        pause.go_on.set()
        finish()


def test_a_slice_sends_the_next_until_all_actions_have_ended(monkeypatch: pytest.MonkeyPatch, redis: Any) -> None:
    monkeypatch.setattr(work, "__kwdefaults__", {**work.__kwdefaults__, "seconds": 0})
    with_jobs(7)
    actions = [asked(Verb.STOP), asked(Verb.REFRESH)]
    turns = 0
    while turns < 20:
        turns += 1
        redis.delete(TICKS)
        act()
        if not waiting(TICKS):
            break
    assert turns == 3 + 3
    assert [result(one)["state"] for one in actions] == ["done", "done"]


def test_recovery_wakes_the_work_on_an_action_whose_tick_or_worker_was_lost(redis: Any) -> None:
    with_jobs(2)
    action = asked(Verb.STOP)
    recover_stale()
    assert waiting(TICKS) == 1
    redis.delete(TICKS)
    held = bulk.action_lease.take("dead", action.pk)
    assert held is not None
    recover_stale()
    assert waiting(TICKS) == 0
    lease_runs_out(action)
    recover_stale()
    assert waiting(TICKS) == 1


def test_a_broker_that_is_away_does_not_fail_the_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(name: str) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(bulk.tick, "send", away)
    assert ask_and_wake(Verb.STOP, Filter(vendor_type="SCAN"), by="", origin=Origin.API).state == "queued"
    lost = "Could not wake the work on actions, recovery will in a few seconds: ConnectionError: no broker"
    assert lost in caplog.messages


def test_stops_of_two_actions_over_the_same_executions_do_not_deadlock() -> None:
    executions = with_jobs(60, tasks=3)
    ids = [one.pk for one in executions]
    stopped = at_once(*(lambda order=order: stop_many(order) for order in (ids, ids[::-1], ids[30:] + ids[:30])))
    assert sorted(len(one.executions) for one in stopped) == [0, 0, 60]
    assert statuses() == {"Stopped": 60}
