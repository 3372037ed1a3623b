"""Refresh one execution in the way of the original: four statements, each committed on its own.

What `refresh` is measured against. The older designs use it.
"""

from collections.abc import Mapping

from django.db import DatabaseError

from executions import crash_points
from executions.database import Statements, absence_translated, first_line
from executions.rollup import Refreshed
from executions.status import Status, is_final

run = Statements(__package__)

TRIES = 5
OVERTAKEN = f"somebody else refreshed it during each of {TRIES} tries"


def refresh_one(execution_id: int) -> Refreshed:
    """Refresh this execution; read again, up to five times, if another refresh comes in between.

    1. Read its status and revision. One that is gone or in quarantine is left alone, and counted nowhere.
    2. Count its tasks by status. Without tasks its status stays as it was set by hand.
    3. Write the status and its history row, if the revision is still the one that was read.
    4. Write the end, if it is final.

    What if the process dies between 3 and 4: its mark is still there, so another instance writes the end,
    before or after; without another it is the moment of the write until then. What if two do it at once: the
    revision lets one of them write, and the other reads again; then both write the end. Raises DatabaseAway
    if there is no database to refuse anything.
    """
    crash_points.reach("one", [execution_id])
    try:
        with absence_translated():
            return _refresh_one(execution_id)
    except DatabaseError as exc:
        return Refreshed(failed={execution_id: first_line(exc)})


def _refresh_one(execution_id: int) -> Refreshed:
    for _ in range(TRIES):
        stored = run("original_get", execution_id=execution_id)
        if not stored:
            return Refreshed()
        before, revision = stored[0]
        counts = dict(run("original_count", execution_id=execution_id))
        if not counts:
            return Refreshed(succeeded=1)
        status = rolled_up(counts)
        crash_points.reach("counted", [execution_id])
        written = run(
            "original_status",
            execution_id=execution_id,
            revision=revision,
            before=before,
            status=str(status),
            final=status.is_final,
        )
        if written:
            crash_points.reach("written", [execution_id])
            if status.is_final:
                run("original_end", execution_id=execution_id)
            return Refreshed(succeeded=1, changed=1)
    return Refreshed(failed={execution_id: OVERTAKEN})


def rolled_up(counts: Mapping[str, int]) -> Status:
    """The rule of the view execution_rollup once more, in Python: the original had it there."""
    if any(not is_final(status) for status in counts):
        return Status.RUNNING
    return next((status for status in (Status.ERROR, Status.STOPPED) if status in counts), Status.SUCCESS)
