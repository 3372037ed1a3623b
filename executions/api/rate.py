"""The rate limit of API tokens: so many requests a minute, counted in Django's cache.

A cache that is away limits nothing, because a lost limit is better than a lost report.
"""

import time

from django.core.cache import cache

from harbor_refresh.executions.api.problems import Problem
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.text import said_by

WINDOW = 60
#: How long a cache that failed is not asked again, so that it does not delay each request.
REST = 5.0


class _Counter:
    """Counts by keys in the cache."""

    rests_until = 0.0

    def add_one(self, key: str) -> int:
        """Return the new count; 0 if it is not known."""
        if time.monotonic() < self.rests_until:
            return 0
        try:
            try:
                return cache.incr(key)
            except ValueError:  # the first request of this minute
                return 1 if cache.add(key, 1, timeout=2 * WINDOW) else cache.incr(key)
        except Exception as exc:  # the cache is the project's own, so its errors are not known here
            self.rests_until = time.monotonic() + REST
            signals.rate_unknown.send(sender=count, error=said_by(exc))
            return 0


counter = _Counter()


def count(token_id: int) -> None:
    """Count a request of this token; raise Problem 429 if the token has used up this minute."""
    limit = intake_settings().requests_per_minute
    if not limit:
        return
    now = int(time.time())
    made = counter.add_one(f"requests:{token_id}:{now // WINDOW}")
    if made > limit:
        wait = WINDOW - now % WINDOW
        raise Problem(
            429,
            "Too many requests",
            f"the token may make {limit:,} requests a minute; the next minute begins in {wait} s",
            {"Retry-After": str(wait)},
        )
