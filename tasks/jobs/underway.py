"""The runs that this process has under way, so that its heartbeat can tell a Redis that was emptied of them."""

from executions.queue import Run, job_records

_runs: dict[str, Run] = {}


def begin(run: Run) -> None:
    _runs[run.job] = run


def end(run: Run) -> None:
    _runs.pop(run.job, None)


def nodes() -> set[str]:
    """Under which names. This process may have started a new life since."""
    return {run.node for run in list(_runs.values())}


def tell_again() -> None:
    for run in list(_runs.values()):
        job_records().check_in(run)
