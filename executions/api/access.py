"""Access: what a caller may do, and how many requests a token may make. Each operation names the scope that it
needs."""

import time

from django.core.cache import DEFAULT_CACHE_ALIAS, caches
from django.http import HttpRequest
from ninja.security import HttpBearer

from harbor_refresh.executions.api.api_tokens import Scope as Scope  # noqa: PLC0414  # what `may` takes
from harbor_refresh.executions.api.api_tokens import recognise
from harbor_refresh.executions.api.problems import Problem, unauthorized
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.models import ApiToken
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.text import said_by

#: Seconds: of the rate limit, and how long a cache that failed is not asked again, so that it delays few requests.
WINDOW, REST = 60, 5.0
#: The cache of the counts, if CACHES has one of this name; else the default cache.
CACHE = "harbor_refresh"
_cache_rests_until = 0.0


def count_request(token_id: int) -> None:
    """Count a request of this token in Django's cache; raise Problem 429 if the token has used up this minute.

    A cache that is away limits nothing, because a lost limit is better than a lost report.
    """
    global _cache_rests_until  # noqa: PLW0603
    limit = intake_settings().requests_per_minute
    if not limit or time.monotonic() < _cache_rests_until:
        return
    now = int(time.time())
    key, wait = f"requests:{token_id}:{now // WINDOW}", WINDOW - now % WINDOW
    try:
        cache = caches[CACHE if CACHE in caches else DEFAULT_CACHE_ALIAS]
        cache.add(key, 0, timeout=2 * WINDOW)
        made = cache.incr(key)
    except Exception as exc:  # the cache is the project's own, so its errors are not known here
        _cache_rests_until = time.monotonic() + REST
        signals.rate_unknown.send(sender=count_request, error=said_by(exc))
        return
    if made > limit:
        told = f"the token may make {limit:,} requests a minute; the next minute begins in {wait} s"
        raise Problem(429, "Too many requests", told, {"Retry-After": str(wait)})


class Token(HttpBearer):
    """An API token with a scope, as `Authorization: Bearer TOKEN`."""

    openapi_description = "An API token, made in the admin. Each operation names the scope that the token needs."

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        row = recognise(token)
        if row is None:
            raise unauthorized("the token is unknown, revoked or expired")
        count_request(row.pk)
        if not getattr(row, f"may_{self.scope}"):
            raise Problem(403, "Not allowed", f"the token lacks the scope `{self.scope}`")
        return row


#: The `auth` of an operation, by the scope that it needs.
may = {scope: Token(scope) for scope in Scope}
