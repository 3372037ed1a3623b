"""What reaper and recovery did, in all, over the list of jobs."""

from typing import Any

from executions.admin.cells import moment
from executions.errors import QueueUnavailable
from tasks.jobs.overview.pass_counts import MEANINGS, Passes, counted


def passes() -> dict[str, Any]:
    try:
        found = counted()
    except QueueUnavailable as exc:
        return {"passes_unknown": str(exc)}
    kinds = (("reaper", "Reaper", found.reaper), ("recovery", "Recovery", found.recovery))
    return {
        "passes": [{"title": title, **_shown(kind, one)} for kind, title, one in kinds],
        "passes_since": found.since,
    }


def _shown(kind: str, one: Passes) -> dict[str, Any]:
    done = [
        {"what": what.replace("_", " "), "count": count, "meaning": MEANINGS[kind][what]}
        for what, count in one.done.items()
    ]
    return {"count": one.passes, "last": moment(one.last), "done": done}
