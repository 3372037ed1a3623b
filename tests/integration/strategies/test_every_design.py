"""What holds for each design: what it refreshes, what it leaves marked, and that nothing stays in Redis."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from benchmarks.designs import STRATEGIES, strategy
from examples.simulation.invariants import violations
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.tasks import conf
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.strategies import strategy as chosen
from tests.created import create_many
from tests.integration.concurrency import at_once
from tests.integration.database_state import rows
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import ODD, left_in_redis, marked, rested, statuses

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_the_settings_and_the_code_name_the_same_designs(settings: Settings) -> None:
    assert set(conf.STRATEGIES) == set(STRATEGIES)
    for name in STRATEGIES:
        settings.REFRESH_STRATEGY = name
        assert strategy().name == name
        assert chosen().runs_cycles == (name != "claim")
        assert chosen() is chosen()


MIXTURES = [
    [*first, *second]
    for first in (["Success"], ["Error"], ["Stopped"], ["Running"], ["Pending"], ["Scheduled"])
    for second in ([], ["Success"], ["Error", "Stopped"], ["Stopped", "Success"], ["Running", "Error"])
]


def test_after_a_cycle_every_status_and_end_is_right_and_nothing_is_left_in_redis(
    any_strategy: str, redis: Redis
) -> None:
    made = create_many(
        NewExecution(vendor, tasks=[NewTask() for _ in mixture]) for mixture in MIXTURES for vendor in ODD[:2]
    )
    reports = [
        Report(pk, status, 1)
        for execution, mixture in zip(made, [one for one in MIXTURES for _ in range(2)], strict=True)
        for pk, status in zip(execution.tasks.values_list("pk", flat=True).order_by("pk"), mixture, strict=True)
    ]
    report([one for one in reports if one.status != "Pending"])
    mark(member(one.pk, one.vendor_type) for one in made)
    assert strategy().backlog() > 0
    outcome = strategy().cycle()
    assert outcome.succeeded >= len(made) - 2  # a stop is refreshed at once as well
    assert outcome.failed == {}
    assert strategy().backlog() == 0
    assert violations() == []
    assert left_in_redis(redis) == set()


def test_a_vendor_may_be_as_odd_as_it_likes(any_strategy: str, redis: Redis) -> None:
    ids = [pk for vendor in ODD for pk in marked(2, vendor)]
    assert strategy().backlog() == len(ids)
    strategy().cycle()
    assert statuses(ids) == {"Success"}
    assert left_in_redis(redis) == set()


def test_what_is_marked_is_not_lost_and_what_is_marked_nowhere_is(any_strategy: str) -> None:
    first, second = (member(pk, "REPLICATION") for pk in marked(2))
    assert strategy().lost([first, second, "999:X"]) == ["999:X"]
    strategy().cycle()
    assert strategy().lost([first, second]) == [first, second]


def test_only_the_claiming_design_asks_for_a_tick_at_once(
    any_strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(wakeup, "send_tick", lambda: asked.append("tick"))
    marked(3)
    assert asked == (["tick"] if any_strategy == "claim" else [])


def test_marks_that_cannot_be_sent_are_told_and_reconcile_finds_them(
    any_strategy: str, monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    def down(*_: Any) -> bool:
        raise QueueUnavailable("Redis: down")

    with monkeypatch.context() as patched:
        patched.setattr(type(chosen()), "mark", down)
        assert mark(["1:A"]) is False
    ids = marked(3)
    redis.flushall()
    assert (reconcile().marked, strategy().backlog()) == (3, 3)
    assert (reconcile().marked, reconcile().waiting) == (0, 3)
    strategy().cycle()
    assert statuses(ids) == {"Success"}


def test_an_execution_that_was_deleted_leaves_nothing_behind(any_strategy: str, redis: Redis) -> None:
    ids = marked(3)
    Task.objects.filter(execution_id=ids[1]).delete()
    Execution.objects.filter(pk=ids[1]).delete()
    outcome = strategy().cycle()
    assert outcome.failed == {}
    assert statuses(ids) == {"Success"}
    assert left_in_redis(redis) == set()


def test_an_execution_in_quarantine_is_left_alone(any_strategy: str, redis: Redis) -> None:
    one, other = marked(2)
    Quarantine.objects.create(execution_id=one, reason="a test", attempts=5)
    outcome = strategy().cycle()
    assert (outcome.succeeded, outcome.failed) == (1, {})
    assert (statuses([one]), statuses([other])) == ({"Running"}, {"Success"})
    assert left_in_redis(redis) == set()


def test_an_execution_without_tasks_stays_as_it_was_set_by_hand(any_strategy: str, redis: Redis) -> None:
    execution = create(NewExecution("GARBAGE_COLLECTION"))
    before = rows(Execution)
    mark([member(execution.pk, "GARBAGE_COLLECTION")])
    strategy().cycle()
    assert (rows(Execution), StatusChange.objects.count()) == (before, 0)
    assert left_in_redis(redis) == set()


def test_two_nodes_at_once_leave_every_status_right(any_strategy: str, redis: Redis) -> None:
    ids = marked(60)
    outcomes = at_once(strategy().cycle, strategy().cycle, strategy().cycle)
    strategy().cycle()  # one that was overtaken five times stays marked
    assert sum(one.succeeded for one in outcomes) >= len(ids)
    assert violations() == []
    assert left_in_redis(redis) == set()


def test_a_mark_that_comes_while_its_execution_waits_in_a_cycle_is_not_forgotten(
    any_strategy: str, redis: Redis
) -> None:
    """Both executions are found by the same cycle; the second changes before its turn."""
    ids = marked(2)
    seen: list[int] = []

    def change(point: str, execution_ids: Sequence[int]) -> None:
        if point in ("one", "claimed") and not seen:
            seen.extend(execution_ids)
            others = Task.objects.filter(execution_id__in=ids).exclude(execution_id=execution_ids[0])
            report([Report(task.pk, "Error", 2) for task in others])

    crash_points.handlers.append(change)
    strategy().cycle()
    rested(redis)
    strategy().cycle()
    assert violations() == []


def test_a_database_that_goes_down_ends_the_cycle_and_what_was_not_done_stays_marked(
    any_strategy: str, monkeypatch: pytest.MonkeyPatch, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ids = marked(20)
    true = connection.settings_dict["NAME"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "there_is_no_such_database")
    with caplog.at_level(logging.WARNING, "harbor_refresh"):
        outcome = strategy().cycle()
    assert (outcome.succeeded, strategy().backlog()) == (0, 20)
    assert "The database is down, 20 executions wait for it" in caplog.text
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", true)
    redis.delete("cache:execution:refresh:pause")  # of the claiming design
    strategy().cycle()
    assert statuses(ids) == {"Success"}


def test_stats_name_the_design_and_count_its_backlog(
    any_strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    marked(3)
    call_command("harbor", "status", "--json")
    data = json.loads(capsys.readouterr().out)
    assert (data["strategy"], data["backlog"]) == (any_strategy, 3)
    call_command("harbor", "status")
    assert (f"The strategy is {any_strategy}." in capsys.readouterr().out) == (any_strategy != "claim")
