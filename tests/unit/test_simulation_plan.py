"""The plan of a simulation: repeatable, with the shares asked for; and the outcome it predicts."""

from collections import Counter
from dataclasses import replace

import pytest

from examples.simulation.plan import WHOLE, Mix, Move, Plan, plan
from examples.simulation.prediction import outcomes, rollup
from harbor_refresh.executions.status import CODES, Status

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
    assert set(outcomes(plan(WILD))) == {Status.SUCCESS, Status.ERROR, Status.STOPPED}


def test_a_plan_without_faults_reports_each_task_once_and_in_order() -> None:
    made = plan(CALM)
    lives: dict[tuple[int, int], list[Status]] = {}
    for move in moves(made):
        lives.setdefault((move.execution, move.task), []).append(move.status)
    assert len(lives) == CALM.executions * CALM.tasks
    assert all(life == [Status.SCHEDULED, Status.RUNNING, Status.SUCCESS] for life in lives.values())
    assert set(outcomes(made)) == {Status.SUCCESS}


def test_a_task_belongs_to_one_runner() -> None:
    owners: dict[tuple[int, int], set[int]] = {}
    for runner, script in enumerate(plan(WILD).scripts):
        for move in script:
            owners.setdefault((move.execution, move.task), set()).add(runner)
    assert all(len(runners) == 1 for runners in owners.values())


def test_an_execution_is_reported_by_many_runners_unless_it_is_stopped() -> None:
    owners: dict[int, set[int]] = {}
    stopped = set()
    for runner, script in enumerate(plan(WILD).scripts):
        for move in script:
            owners.setdefault(move.execution, set()).add(runner)
            if move.task == WHOLE:
                stopped.add(move.execution)
    assert stopped
    for execution, runners in owners.items():
        assert len(runners) == (1 if execution in stopped else WILD.runners)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_each_trouble_has_its_share(share: float) -> None:
    stopped = moves(plan(replace(CALM, executions=1000, tasks=1, stops=share)))
    assert sum(move.task == WHOLE for move in stopped) == pytest.approx(1000 * share, abs=50)
    failed = moves(plan(replace(CALM, executions=250, errors=share)))
    assert sum(move.status == Status.ERROR for move in failed) == pytest.approx(1000 * share, abs=50)
    repeated = Counter(moves(plan(replace(CALM, executions=250, duplicates=share))))
    assert sum(times == 2 for times in repeated.values()) == pytest.approx(3000 * share, abs=100)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_a_task_that_runs_again_fails_first(share: float) -> None:
    made = moves(plan(replace(CALM, executions=250, retries=share)))
    again = {(move.execution, move.task) for move in made if move.revision == 1}
    failed = {(move.execution, move.task) for move in made if move.status == Status.ERROR}
    assert again == failed
    assert len(again) == pytest.approx(1000 * share, abs=50)


@pytest.mark.parametrize("troubled", [replace(CALM, late=0.5), replace(CALM, reordered=0.5)])
def test_late_and_reordered_reports_come_out_of_order_and_change_no_outcome(troubled: Mix) -> None:
    assert _out_of_order(plan(CALM)) == 0
    assert _out_of_order(plan(troubled)) > 100
    assert outcomes(plan(troubled)) == outcomes(plan(CALM))


def _out_of_order(made: Plan) -> int:
    highest: dict[tuple[int, int], int] = {}
    count = 0
    for move in moves(made):
        rank = move.revision * 4 + CODES[move.status]
        key = (move.execution, move.task)
        count += rank < highest.get(key, 0)
        highest[key] = max(rank, highest.get(key, 0))
    return count


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


def test_the_prediction_rolls_up_in_the_order_of_the_rule() -> None:
    everything = list(Status)
    for gone, outcome in (
        ((), Status.RUNNING),
        ((Status.PENDING, Status.SCHEDULED, Status.RUNNING), Status.ERROR),
        ((Status.ERROR,), Status.STOPPED),
        ((Status.STOPPED,), Status.SUCCESS),
    ):
        everything = [status for status in everything if status not in gone]
        assert rollup(everything) == outcome
