"""The totals of reaper and recovery, shown above the list of jobs."""

from typing import Any

from harbor_refresh.executions.admin.formatters import moment
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.jobs.overview.pass_counts import Passes, counted

WHAT = {
    "recovery": "It runs jobs again whose worker died, and sends messages that were lost.",
    "reaper": "It compares the jobs in progress with the database, and reports what was lost in between.",
}
#: In the words of operators. docs/jobs.md explains each count.
MEANINGS = {
    "recovery": {
        "given_back": "jobs of dead workers that run again",
        "landed": "last reports that came late, made again",
        "sent": "messages that were missing, sent",
        "unreadable": "records that could not be read, dropped",
        "troubled": "pages that the database refused, left to the next pass",
    },
    "reaper": {
        "reported": "reports that the database had not received, made again",
        "forgotten": "jobs that had ended, removed from Redis",
        "failed": "jobs of silent workers that ended as Error",
        "taken": "jobs whose record was behind the database, corrected",
        "lost": "jobs that Redis had forgotten, looked for",
        "unsent": "jobs whose message Redis had lost, to be sent again",
        "unreadable": "records that could not be read, dropped",
        "troubled": "pages that the database refused, left to the next pass",
    },
}


def repair_totals() -> dict[str, Any]:
    try:
        found = counted()
    except QueueUnavailable as exc:
        return {"repair_totals_error": str(exc)}
    kinds = (("recovery", "Recovery", found.recovery), ("reaper", "Reaper", found.reaper))
    return {
        "repair_totals": [{"title": title, "what": WHAT[kind], **_shown(kind, one)} for kind, title, one in kinds],
        "repair_totals_sum": sum(sum(one.done.values()) for _, _, one in kinds),
        "repair_totals_since": moment(found.since) if found.since else "",
    }


def _shown(kind: str, one: Passes) -> dict[str, Any]:
    done = [{"count": one.done.get(what, 0), "meaning": meaning} for what, meaning in MEANINGS[kind].items()]
    return {"count": one.passes, "last": moment(one.last), "done": done}
