"""The plan of a simulation: repeatable, with the shares asked for; and the outcome it predicts."""

from collections import Counter
from dataclasses import replace

import pytest

from examples.simulation.plan import WHOLE, Mix, Move, Plan, plan
from examples.simulation.prediction import outcomes
from harbor_refresh.executions.status import CODES, Status

CALM = Mix(errors=0, retries=0, stops=0, duplicates=0, late=0, reordered=0)
WILD = Mix(executions=400, errors=0.3, retries=0.3, stops=0.2, duplicates=0.3, late=0.3, reordered=0.3)


def moves(made: Plan) -> list[Move]:
    return [move for script in made.scripts for move in script]


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plan(WILD) == plan(WILD)
    assert plan(WILD).scripts != plan(replace(WILD, seed=1)).scripts
    assert set(outcomes(plan(WILD))) == {Status.SUCCESS, Status.ERROR, Status.STOPPED}


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_each_trouble_has_its_share(share: float) -> None:
    stopped = moves(plan(replace(CALM, executions=1000, tasks=1, stops=share)))
    assert sum(move.task == WHOLE for move in stopped) == pytest.approx(1000 * share, abs=50)
    failed = moves(plan(replace(CALM, executions=250, errors=share)))
    assert sum(move.status == Status.ERROR for move in failed) == pytest.approx(1000 * share, abs=50)
    repeated = Counter(moves(plan(replace(CALM, executions=250, duplicates=share))))
    assert sum(times == 2 for times in repeated.values()) == pytest.approx(3000 * share, abs=100)


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
