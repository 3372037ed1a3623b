"""Access: what a caller may do, and how many requests a token may make. Each operation names the scope that it
needs."""

import threading
import time
from collections import Counter

from django.http import HttpRequest
from ninja.security import HttpBearer

from harbor_refresh.executions.api.api_tokens import Scope as Scope  # noqa: PLC0414  # what `may` takes
from harbor_refresh.executions.api.api_tokens import recognise
from harbor_refresh.executions.api.problems import Problem, unauthorized
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.models import ApiToken

#: Seconds of the rate limit.
WINDOW = 60
_counting = threading.Lock()
#: The requests of each token in this minute of this process.
_minute, _made = 0, Counter[int]()


def count_request(token_id: int) -> None:
    """Count a request of this token in this process; raise Problem 429 if the token has used up this minute."""
    global _minute  # noqa: PLW0603
    minute, second = divmod(int(time.time()), WINDOW)
    with _counting:
        if minute != _minute:
            _minute = minute
            _made.clear()
        _made[token_id] += 1
        made = _made[token_id]
    if 0 < (limit := intake_settings().requests_per_minute) < made:
        wait = WINDOW - second
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
