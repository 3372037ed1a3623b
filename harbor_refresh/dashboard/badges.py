"""Badges: the counts of quarantine and of dead letters beside their entries in the sidebar.

The sidebar is on every page, so a process reads the two counts once in BADGE_SECONDS, and they stop at 10,000.
They never ask Redis, because the pages of the admin must open while Redis hangs.
"""

import threading
from time import monotonic

from django.db import Error

from harbor_refresh.executions.database import run
from harbor_refresh.tasks.overview.state import MOST

BADGE_SECONDS = 10.0

_lock = threading.Lock()
_counted: tuple[float, int, int] = (float("-inf"), 0, 0)


def forget() -> None:
    """Count anew for the next page."""
    global _counted  # noqa: PLW0603
    _counted = (float("-inf"), 0, 0)


def quarantined() -> str:
    return _shown(_counts()[1])


def dead_letters() -> str:
    return _shown(_counts()[2])


def _counts() -> tuple[float, int, int]:
    """Return the latest counts. While one thread counts, the other threads use the counts before."""
    global _counted  # noqa: PLW0603
    known = _counted
    if monotonic() - known[0] < BADGE_SECONDS or not _lock.acquire(blocking=False):
        return known
    try:
        known = _counted = (monotonic(), *run("count_to_look_at", most=MOST)[0])
    except Error:
        return known
    finally:
        _lock.release()
    return known


def _shown(count: int) -> str:
    return f"{MOST:,}+" if count >= MOST else f"{count:,}" if count else ""
