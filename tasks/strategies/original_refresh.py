"""Refresh one execution as the original does: four statements, each committed separately."""

from collections.abc import Mapping

from django.db import DatabaseError

from harbor_refresh.executions.database import Statements, absence_translated, first_line
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.executions.status import Status, is_final

run = Statements(__package__)

TRIES = 5
OVERTAKEN = f"another process refreshed it during each of {TRIES} tries"


def refresh_one(execution_id: int) -> Refreshed:
    """Refresh this execution. If another refresh comes in between, read again, up to five times in all.

    1. Read its status and revision. If it is deleted or in quarantine, do nothing and count nothing.
    2. Count its tasks by status. Without tasks its status stays as it was set by hand.
    3. Write the status and its history row, if the revision is still the one that was read.
    4. Write the end, if the status is final.

    If the process dies between 3 and 4, the mark is still there, so a later refresh writes the end. If two
    processes refresh it at once, the revision lets one of them write, the other reads again, and both write the
    end.
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
        status = roll_up(counts)
        crash_points.reach("counted", [execution_id])
        written = run(
            "original_status",
            execution_id=execution_id,
            revision=revision,
            before=before,
            status=str(status),
            final=is_final(status),
        )
        if written:
            crash_points.reach("written", [execution_id])
            if is_final(status):
                run("original_end", execution_id=execution_id)
            return Refreshed(succeeded=1, changed=1)
    return Refreshed(failed={execution_id: OVERTAKEN})


def roll_up(counts: Mapping[str, int]) -> Status:
    """Apply the rule of execution_rollup.sql, in Python, because the original has it in its code."""
    if any(not is_final(status) for status in counts):
        return Status.RUNNING
    return next((status for status in (Status.ERROR, Status.STOPPED) if status in counts), Status.SUCCESS)
