"""The totals of reaper and recovery, shown above the list of jobs."""

from typing import Any

from executions.admin.formatters import moment
from executions.errors import QueueUnavailable
from tasks.jobs.overview.pass_counts import MEANINGS, Passes, counted


def repair_totals() -> dict[str, Any]:
    try:
        found = counted()
    except QueueUnavailable as exc:
        return {"repair_totals_error": str(exc)}
    kinds = (("reaper", "Reaper", found.reaper), ("recovery", "Recovery", found.recovery))
    return {
        "repair_totals": [{"title": title, **_shown(kind, one)} for kind, title, one in kinds],
        "repair_totals_since": found.since,
    }


def _shown(kind: str, one: Passes) -> dict[str, Any]:
    done = [
        {"what": what.replace("_", " "), "count": count, "meaning": MEANINGS[kind][what]}
        for what, count in one.done.items()
    ]
    return {"count": one.passes, "last": moment(one.last), "done": done}
