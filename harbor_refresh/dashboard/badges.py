"""Badges: the counts of quarantine and of dead letters beside their entries in the sidebar.

The sidebar is on every page, so a process reads the two counts once in ten seconds, and they stop at 10,000. They
never ask Redis, because the pages of the admin must open while Redis hangs. Without the database they are empty.
"""

from django.db import Error

from harbor_refresh.executions.admin.live import Shared
from harbor_refresh.executions.database import run
from harbor_refresh.tasks.overview.state import MOST


def quarantined() -> str:
    return _shown(0)


def dead_letters() -> str:
    return _shown(1)


def _count() -> tuple[int, int]:
    try:
        quarantined, dead_letters = run("count_to_look_at", most=MOST)[0]
    except Error:
        return 0, 0
    return quarantined, dead_letters


COUNTS = Shared(_count, fresh=10.0, stale=60.0)


def _shown(which: int) -> str:
    count = (COUNTS.value() or (0, 0))[which]
    return f"{MOST:,}+" if count >= MOST else f"{count:,}" if count else ""
