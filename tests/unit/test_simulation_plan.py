"""The plan of a simulation: repeatable, with the shares asked for; and the outcome it predicts."""

from dataclasses import replace

import pytest

from examples.simulation.plan import WHOLE, Mix, Move, Plan, plan
from examples.simulation.prediction import outcomes
from harbor_refresh.executions.status import Status

CALM = Mix(errors=0, retries=0, stops=0, duplicates=0, late=0, reordered=0)
WILD = Mix(executions=400, errors=0.3, retries=0.3, stops=0.2, duplicates=0.3, late=0.3, reordered=0.3)


def moves(made: Plan) -> list[Move]:
    return [move for script in made.scripts for move in script]


def script(*steps: tuple[int, Status, int]) -> Plan:
    """A plan of one runner, one execution and two tasks."""
    mix = replace(CALM, executions=1, tasks=2, runners=1)
    return Plan(mix, ("SLACK",), (tuple(Move(0, *step) for step in steps),))


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plan(WILD) == plan(WILD)
    assert plan(WILD).scripts != plan(replace(WILD, seed=1)).scripts


def test_a_plan_without_faults_reports_each_task_once_and_in_order() -> None:
    made = plan(CALM)
    lives: dict[tuple[int, int], list[Status]] = {}
    for move in moves(made):
        lives.setdefault((move.execution, move.task), []).append(move.status)
    assert len(lives) == CALM.executions * CALM.tasks
    assert all(life == [Status.SCHEDULED, Status.RUNNING, Status.SUCCESS] for life in lives.values())
    assert set(outcomes(made)) == {Status.SUCCESS}


@pytest.mark.parametrize("troubled", [replace(CALM, late=0.5), replace(CALM, reordered=0.5)])
def test_late_and_reordered_reports_come_out_of_order_and_change_no_outcome(troubled: Mix) -> None:
    assert _out_of_order(plan(CALM)) == 0
    assert _out_of_order(plan(troubled)) > 100
    assert outcomes(plan(troubled)) == outcomes(plan(CALM))


def _out_of_order(made: Plan) -> int:
    highest: dict[tuple[int, int], int] = {}
    count = 0
    for move in moves(made):
        rank = move.revision * 4 + move.status.code
        key = (move.execution, move.task)
        count += rank < highest.get(key, 0)
        highest[key] = max(rank, highest.get(key, 0))
    return count


def test_every_execution_of_a_plan_reaches_an_end() -> None:
    assert set(outcomes(plan(WILD))) == {Status.SUCCESS, Status.ERROR, Status.STOPPED}


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([], "Running"),
        ([(0, Status.SUCCESS, 0)], "Running"),
        ([(0, Status.SUCCESS, 0), (1, Status.SUCCESS, 0)], "Success"),
        ([(0, Status.SUCCESS, 0), (1, Status.ERROR, 0)], "Error"),
        ([(0, Status.STOPPED, 0), (1, Status.ERROR, 0)], "Error"),
        ([(0, Status.STOPPED, 0), (1, Status.SUCCESS, 0)], "Stopped"),
        # the first final status of a revision stands, and what is late changes nothing
        ([(0, Status.SUCCESS, 0), (1, Status.ERROR, 0), (1, Status.SUCCESS, 0)], "Error"),
        ([(0, Status.SUCCESS, 0), (1, Status.SUCCESS, 0), (1, Status.RUNNING, 0)], "Success"),
        # a newer revision is a re-run
        ([(0, Status.SUCCESS, 0), (1, Status.ERROR, 0), (1, Status.PENDING, 1)], "Running"),
        ([(0, Status.SUCCESS, 0), (1, Status.SUCCESS, 1), (1, Status.ERROR, 0)], "Success"),
        # a stop takes what has not ended, and what ended before it stands
        ([(WHOLE, Status.STOPPED, 0)], "Stopped"),
        ([(0, Status.ERROR, 0), (WHOLE, Status.STOPPED, 0)], "Error"),
        ([(WHOLE, Status.STOPPED, 0), (0, Status.SUCCESS, 0)], "Stopped"),
        ([(WHOLE, Status.STOPPED, 0), (0, Status.RUNNING, 1)], "Running"),
    ],
)
def test_the_prediction(steps: list[tuple[int, Status, int]], outcome: str) -> None:
    assert outcomes(script(*steps)) == [outcome]
