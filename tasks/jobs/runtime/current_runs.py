"""The current runs of this process. Its heartbeat renews their leases."""

import logging
from contextlib import suppress

from django.db import DatabaseError, connection

from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.tasks.jobs.lifecycle.task_state import has_ended, task_states
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import LeaseAnswer, Run

log = logging.getLogger("harbor_refresh")

_runs: dict[str, Run] = {}
_lost: set[Run] = set()


def begin(run: Run) -> None:
    _runs[run.job] = run


def end(run: Run) -> None:
    if _runs.get(run.job) == run:
        del _runs[run.job]
    _lost.discard(run)


def is_lost(run: Run) -> bool:
    """Whether its job has ended, or was given to another run, while this run goes on."""
    return run in _lost


def current() -> list[Run]:
    return list(_runs.values())


def nodes() -> set[str]:
    """Return the names under which the runs began. This process may have taken a new name since."""
    return {run.node for run in current()}


def renew() -> list[Run]:
    """Renew the leases of the current runs. Returns runs that Redis has forgotten. Raises QueueUnavailable."""
    runs = current()
    _lost.intersection_update(runs)
    found = dict(zip(runs, job_records().renew(runs), strict=True))
    _lost.update(run for run, lease in found.items() if lease == LeaseAnswer.OTHER)
    return [run for run, lease in found.items() if lease == LeaseAnswer.FORGOTTEN]


def record_anew(forgotten: list[Run]) -> None:
    """Ask the database about runs that Redis has forgotten.

    If its job goes on, the record of a run is written again. If the job has ended, or is in a later revision, the
    run is lost, and `is_lost` says so. What if a server is away: the next heartbeat finds the runs forgotten
    again.
    """
    try:
        known = task_states([run.task_id for run in forgotten])
    except (DatabaseAway, DatabaseError) as exc:
        log.warning("Cannot ask whether %d runs that Redis has forgotten go on: %s", len(forgotten), exc)
        return
    finally:
        connection.close()  # its thread ends
    standing: list[Run] = []
    for run in forgotten:
        state = known.get(run.task_id)
        if state is None or has_ended(state, run.job) or state.revision > run.revision:
            _lost.add(run)
        elif _runs.get(run.job) == run:
            standing.append(run)
    with suppress(QueueUnavailable):
        job_records().renew(standing, forgotten_too=True)
