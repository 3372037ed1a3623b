"""The service as a WSGI application that tells, in a header of each answer, what the answer cost the server.

`Server-Timing: app;dur=MILLISECONDS, sql;desc=STATEMENTS`. The time is from the call of the application until the
answer is complete and its status is written; the time on the wire is not in it. Only the bench serves this.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection

from harbor_refresh.wsgi import application as service

HEADER = "Server-Timing"


class _Counter:
    def __init__(self) -> None:
        self.statements = 0

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.statements += 1
        return execute(*args)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    began = time.perf_counter()
    counter = _Counter()

    def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        milliseconds = (time.perf_counter() - began) * 1000
        cost = (HEADER, f"app;dur={milliseconds:.3f}, sql;desc={counter.statements}")
        return start_response(status, [*headers, cost], *more)

    with connection.execute_wrapper(counter):
        return service(environ, start)
