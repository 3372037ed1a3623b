"""Actions as rows: asked for, stopped, resumed, and held by one process at a time."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from harbor_refresh.executions.actions import bulk
from harbor_refresh.executions.actions.action_lease import Done, HeldAction, take
from harbor_refresh.executions.actions.bulk import ask, find, resume, stop_action
from harbor_refresh.executions.errors import ActionEnded, LeaseLost, NoSuchAction, Refused, TooManyActions
from harbor_refresh.executions.models import Action, Execution
from harbor_refresh.executions.models.operations import Origin, State, Verb
from harbor_refresh.executions.queries.filters import Filter
from tests.integration.concurrency import at_once, transaction_held_open
from tests.integration.database_state import rows
from tests.integration.sample_actions import asked, lease_runs_out, result
from tests.integration.sample_executions import made

pytestmark = pytest.mark.usefixtures("database")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def taken(holder: str = "a", action: Action | None = None) -> HeldAction:
    held = take(holder, action and action.pk)
    assert held is not None
    return held


def test_an_action_is_asked_for_with_all_that_its_work_needs() -> None:
    made(), made()
    action = ask(Verb.DELETE, Filter(vendor_type="TEST", statuses=("Error",)), by="token 3", origin=Origin.API)
    row = rows(Action)[action.pk]
    moments = {name: row.pop(name) for name in ("created_at", "updated_at")}
    assert None not in moments.values()
    assert row == {
        "pk": action.pk,
        "id": action.pk,
        "verb": "delete",
        "filter": {"vendor_type": "TEST", "statuses": ["Error"]},
        "state": "queued",
        "highest": Execution.objects.latest("pk").pk,
        "cursor": 0,
        "total": None,
        "done": 0,
        "changed": 0,
        "failed": 0,
        "skipped": 0,
        "requested_by": "token 3",
        "requested_from": "api",
        "stop_asked": False,
        "error": "",
        "attempts": 0,
        "holder": None,
        "held_until": None,
        "begun_at": None,
        "ended_at": None,
    }


def test_a_filter_that_chooses_everything_must_be_meant() -> None:
    with pytest.raises(Refused, match="the filter is empty"):
        ask(Verb.STOP, Filter(), by="", origin=Origin.API)
    assert not Action.objects.exists()
    ask(Verb.STOP, Filter(), by="", origin=Origin.API, everything=True)
    assert Action.objects.exists()


def test_open_actions_are_bounded_and_ended_ones_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_OPEN", 2)
    first, _ = asked(), asked()
    with pytest.raises(TooManyActions, match="2 actions are open"):
        asked()
    asked(origin=Origin.TERMINAL)  # a command does its own work, so it waits for no worker
    stop_action(first.pk)
    asked()


IMPOSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("action_verb_known", {"verb": "mark"}),
    ("action_origin_known", {"requested_from": "mail"}),
    ("action_ends_when_final", {"state": "waiting", "begun_at": NOW}),
    ("action_ends_when_final", {"state": "done", "begun_at": NOW}),
    ("action_ends_when_final", {"ended_at": NOW}),
    ("action_held_while_it_runs", {"holder": "a"}),
    ("action_held_while_it_runs", {"state": "running", "begun_at": NOW, "holder": "a"}),
    ("action_held_while_it_runs", {"state": "running", "begun_at": NOW, "held_until": NOW}),
    ("action_held_while_it_runs", {"holder": "a", "held_until": NOW}),
    ("action_begins_before_it_runs", {"state": "running"}),
    ("action_begins_before_it_runs", {"state": "done", "ended_at": NOW}),
    ("action_counts_add_up", {"done": 1}),
    ("action_counts_add_up", {"changed": 1}),
    ("action_counts_add_up", {"changed": 2, "skipped": -1, "done": 1}),
    ("action_cursor_in_range", {"cursor": 8}),
    ("action_cursor_in_range", {"cursor": -1}),
]


@pytest.mark.parametrize(("constraint", "values"), IMPOSSIBLE)
def test_an_impossible_action_is_refused(constraint: str, values: dict[str, Any]) -> None:
    usual = {"verb": "stop", "highest": 7, "requested_from": "api"}
    with pytest.raises(IntegrityError, match=f'"{constraint}"'), transaction.atomic():
        Action.objects.create(**(usual | values))
    assert rows(Action) == {}


# stop and resume


def test_an_action_that_waits_is_stopped_at_once() -> None:
    action = stop_action(asked().pk)
    assert (action.state, action.stop_asked, action.ended_at is not None) == ("stopped", True, True)
    assert take("a") is None


def test_an_action_in_progress_is_told_to_stop_by_its_next_note() -> None:
    held = taken("a", asked())
    assert held.note(0, Done()) is False
    action = stop_action(held.action.pk)
    assert (action.state, action.stop_asked, action.holder) == ("running", True, "a")
    assert held.note(0, Done()) is True
    assert stop_action(held.action.pk).state == "running"
    held.release(State.STOPPED)
    assert result(action) == {"state": "stopped"}
    with pytest.raises(ActionEnded, match=f"action {action.pk} has ended: it is stopped"):
        stop_action(action.pk)


def test_an_action_whose_process_died_is_stopped_at_once_and_that_process_writes_nothing_more() -> None:
    held = taken("a", asked())
    lease_runs_out(held.action)
    assert stop_action(held.action.pk).state == "stopped"
    before = rows(Action)
    with pytest.raises(LeaseLost):
        held.note(0, Done(changed=1))
    held.release(State.DONE)
    assert rows(Action) == before


def test_an_unknown_action_is_named() -> None:
    for verb in (find, stop_action, lambda pk: resume(pk, Origin.TERMINAL)):
        with pytest.raises(NoSuchAction, match="there is no action 7"):
            verb(7)


def test_a_stopped_action_is_resumed_where_it_ended() -> None:
    for _ in range(5):
        made()
    held = taken("a", asked())
    held.note(3, Done(changed=1, skipped=1))
    held.release(State.STOPPED)
    action = resume(held.action.pk, Origin.TERMINAL)
    assert (action.state, action.cursor, action.done, action.ended_at) == ("queued", 3, 2, None)
    assert action.requested_from == "terminal"
    again = taken("b", action)
    assert again.note(5, Done(failed=1, errors=["no more"])) is False
    again.release(State.DONE)
    assert result(action) == {"state": "done", "changed": 1, "skipped": 1, "failed": 1}
    assert action.error == "no more"


def test_what_is_done_or_in_progress_is_not_resumed() -> None:
    held = taken("a", asked())
    with pytest.raises(Refused, match="cannot be resumed: a works on it"):
        resume(held.action.pk, Origin.TERMINAL)
    held.release(State.DONE)
    with pytest.raises(Refused, match="cannot be resumed: it is done"):
        resume(held.action.pk, Origin.TERMINAL)


# the lease


def test_one_of_two_processes_takes_an_action() -> None:
    action = asked()
    holders = at_once(*(lambda name=name: take(name, action.pk) for name in "abcd"))
    held = [one for one in holders if one]
    assert len(held) == 1
    assert find(action.pk).holder == held[0].holder


def test_one_of_two_workers_takes_the_only_action() -> None:
    asked()
    assert sum(one is not None for one in at_once(*(lambda name=name: take(name) for name in "abcd"))) == 1


def test_an_expired_lease_is_taken_over_and_the_work_of_the_late_process_is_rolled_back() -> None:
    execution, _ = made()
    held = taken("a", asked())
    lease_runs_out(held.action)
    heir = taken("b", held.action)

    def late_page() -> None:
        with transaction.atomic():
            Execution.objects.filter(pk=execution.pk).update(status_message="late")
            held.note(1, Done(changed=1))

    with pytest.raises(LeaseLost):
        late_page()
    assert heir.note(1, Done(skipped=1)) is False
    heir.release(State.DONE)
    execution.refresh_from_db()
    assert (execution.status_message, result(held.action)) == ("", {"state": "done", "skipped": 1})


def test_a_process_that_stood_still_goes_on_if_no_other_took_over() -> None:
    held = taken("a", asked())
    lease_runs_out(held.action)
    assert held.note(0, Done()) is False
    assert take("b") is None


def test_a_lease_from_a_clock_that_went_back_does_not_count() -> None:
    held = taken("a", asked())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE execution_action SET held_until = clock_timestamp() + interval '1 day'")
    assert taken("b", held.action).holder == "b"


def test_a_take_waits_for_a_page_in_progress_and_then_finds_its_lease() -> None:
    held = taken("a", asked())
    lease_runs_out(held.action)
    with transaction_held_open(lambda: held.note(0, Done())) as commit:
        outcome = at_once(lambda: take("b"), commit)
    assert outcome[0] is None
    assert find(held.action.pk).holder == "a"


def test_workers_work_on_one_action_at_a_time_and_take_turns() -> None:
    first, second = asked(), asked()
    held = taken("a")
    assert held.action == first
    assert take("b") is None
    held.release(State.RUNNING)
    held = taken("b")
    assert held.action == second
    held.release(State.RUNNING)
    assert taken("a").action == first


def test_an_action_of_a_terminal_is_left_to_it_and_keeps_no_worker_waiting() -> None:
    of_terminal, of_api = asked(origin=Origin.TERMINAL), asked()
    held = taken("t", of_terminal)
    assert taken("a").action == of_api
    assert take("b", of_terminal.pk) is None
    lease_runs_out(held.action)
    assert take("b") is None
    assert taken("t2", of_terminal).holder == "t2"


def test_takes_without_progress_are_counted() -> None:
    action = asked()
    for attempt in (1, 2, 3):
        assert taken("a", action).action.attempts == attempt
        lease_runs_out(action)
    held = taken("a", action)
    held.note(0, Done())
    held.release(State.RUNNING)
    assert taken("a", action).action.attempts == 1


def test_a_reason_that_cannot_be_stored_is_made_storable() -> None:
    held = taken("a", asked())
    held.note(0, Done(failed=2, errors=["\x00" * 2_000, "second"]))
    assert find(held.action.pk).error == "?" * 1_000
    held.release(State.FAILED, "because \ud800")
    assert find(held.action.pk).error == "because ?"
