"""The parts of the page of the queue: for a page that is loaded, and for pages that are open.

Open pages ask every EVERY_MS. They share one look: a process makes the parts once in FRESH_SECONDS for all pages
of a site whose users may do the same. What if many pages ask at once: one thread looks, and the other threads
answer with the look before. What if a look hangs: once the look before is STALE_SECONDS old, pages are told that
there is none. A page that is loaded, for example after a pause, always looks by itself. FRESH_SECONDS is shorter
than EVERY_MS, so that page is not told afterwards what was before.
"""

import threading
from collections import defaultdict
from time import monotonic

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin import live
from harbor_refresh.tasks.admin.queue_tables import queue_tables

NAMES = ("notes", "numbers", "queues", "nodes", "claims", "waiting", "quarantine")
EVERY_MS = 3_000
FRESH_SECONDS = 2.5
STALE_SECONDS = 10.0

#: The name of the site, because links stay on it, and what the user may do.
Key = tuple[str, bool, bool]
#: When the latest look began, and the answer that it gave.
_latest: dict[Key, tuple[float, bytes]] = {}
_locks: defaultdict[Key, threading.Lock] = defaultdict(threading.Lock)


def parts(*, may_change: bool, may_release: bool) -> dict[str, SafeString]:
    """Look, and return the parts of the page by name."""
    context = queue_tables(may_change=may_change, may_release=may_release)
    return {name: render_to_string(f"tasks/admin/queue/{name}.html", context) for name in NAMES}


def shared_answer(site: str, *, may_change: bool, may_release: bool) -> bytes | None:
    """Return the answer for open pages, or None if no look has come back for STALE_SECONDS."""
    key = (site, may_change, may_release)
    known = _younger_than(FRESH_SECONDS, key)
    if known is not None:
        return known
    before = _younger_than(STALE_SECONDS, key)
    if not _locks[key].acquire(timeout=STALE_SECONDS if before is None else 0):
        return before
    try:
        known = _younger_than(FRESH_SECONDS, key)  # made while this thread waited
        if known is None:
            begun = monotonic()
            known = live.encoded({"parts": parts(may_change=may_change, may_release=may_release)})
            _latest[key] = (begun, known)
        return known
    finally:
        _locks[key].release()


def _younger_than(seconds: float, key: Key) -> bytes | None:
    begun, answer = _latest.get(key, (float("-inf"), b""))
    return answer if monotonic() - begun < seconds else None
