"""The outcome that a plan predicts, computed move by move in Python and independently of the SQL."""

from examples.simulation.plan import WHOLE, Move, Plan
from harbor_refresh.executions.status import CODES, Status, is_final


def outcomes(plan: Plan) -> list[Status]:
    """Return the status that each execution of the plan must have in the end, in the plan's order."""
    tasks = [[(0, Status.PENDING)] * plan.mix.tasks for _ in range(plan.mix.executions)]
    for script in plan.scripts:
        for move in script:
            _make(move, tasks[move.execution])
    return [rollup([status for _, status in one]) for one in tasks]


def _make(move: Move, tasks: list[tuple[int, Status]]) -> None:
    if move.task == WHOLE:
        for place, (revision, status) in enumerate(tasks):
            if not is_final(status):
                tasks[place] = (revision, Status.STOPPED)
        return
    revision, status = tasks[move.task]
    newer = move.revision > revision
    further = move.revision == revision and CODES[move.status] > CODES[status]
    if newer or further:
        tasks[move.task] = (move.revision, move.status)


def rollup(statuses: list[Status]) -> Status:
    """Apply the rule: Running if a task is unfinished, else Error, else Stopped, else Success."""
    if not all(map(is_final, statuses)):
        return Status.RUNNING
    for worst in (Status.ERROR, Status.STOPPED):
        if worst in statuses:
            return worst
    return Status.SUCCESS
