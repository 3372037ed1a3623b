"""`manage.py refresh_queue`: look at the queue, and act on it."""

from harbor_refresh.tasks.management.command import WaitsOnceCommand
from harbor_refresh.tasks.management.verbs import (
    check,
    claims,
    export_legacy,
    import_legacy,
    mark,
    pause,
    quarantine,
    queue_stats,
    recover,
    resume,
    why,
)

VERBS = {
    "stats": queue_stats,
    "claims": claims,
    "why": why,
    "check": check,
    "mark": mark,
    "recover": recover,
    "quarantine": quarantine,
    "pause": pause,
    "resume": resume,
    "import-legacy": import_legacy,
    "export-legacy": export_legacy,
}


class Command(WaitsOnceCommand):
    help = "Look at the queue of executions to be refreshed, and act on it."
    verbs = VERBS
