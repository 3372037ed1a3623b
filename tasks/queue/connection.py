"""The connection to Redis, and the only place where its errors become ours.

There are two clients, because only some operations may be sent twice. To add, complete and look is idempotent, so
the `patient` client tries again over a new connection. A claim sent twice would take two batches, so the `single`
client never repeats: it fails, and the node takes a new name.

A server that answers but does not serve counts as away (`NotServing`).
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

import redis
from redis import Redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer
from redis.retry import Retry

from executions.errors import QueueUnavailable
from tasks.conf import refresh_settings

#: Another server should be asked: this one is a replica, lost its primary or its cluster, or was demoted while the
#: client waited. (While a server loads its data, the library raises a connection error.)
ELSEWHERE = ("READONLY", "MASTERDOWN", "CLUSTERDOWN", "UNBLOCKED")
#: This server should be asked, and refuses: it is full, cannot save, has too few replicas, or runs a long script.
REFUSED = ("OOM", "MISCONF", "NOREPLICAS", "BUSY")
#: The answer starts with the code. EXEC puts words of its own before it, and so does Redis before 7 in a script.
_CODE = re.compile(
    rf"(?:(?:EXECABORT|ERR Error running script).*: -?)?({'|'.join(ELSEWHERE + REFUSED)}) ", re.DOTALL
)

#: An operation starts no further attempt after this many times the timeout of one answer.
PATIENCE = 1.5


class NotServing(ResponseError):
    """The server answers, but serves nothing at the moment."""


class WrongServer(NotServing):
    """Another server serves in its place; a new connection may reach that one."""


class _Wary:
    """A connection that reconnects after an answer of the wrong server."""

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().read_response(*args, **kwargs)  # type: ignore[misc]
        except ResponseError as exc:
            answer = f"{exc.status_code} {exc}" if exc.status_code else str(exc)
            if (found := _CODE.match(answer)) is None:
                raise
            if found[1] in REFUSED:
                raise NotServing(answer) from exc
            self.mark_for_reconnect()  # type: ignore[attr-defined]
            raise WrongServer(answer) from exc


class WaryConnection(_Wary, redis.Connection):
    pass


class WarySSLConnection(_Wary, redis.SSLConnection):
    pass


class _Verb(threading.local):
    """The Redis operation that this thread is in."""

    began: float | None = None
    is_trying = False
    remembers_absence = False
    absence: str | None = None


_verb = _Verb()


class Patience(Retry):
    """Retry up to a number of tries, and only within the time of the operation.

    The library also retries inside a command: while it connects, and while it checks a connection. That would be
    four times four attempts. Inside an attempt this class does not retry.
    """

    def __init__(self, timeout: float, tries: int) -> None:
        backoff = ExponentialBackoff(cap=0.5, base=0.02) if tries > 1 else NoBackoff()
        super().__init__(backoff, tries - 1, (NoConnection, NoAnswer, TimeoutError, WrongServer))
        self._seconds = PATIENCE * timeout

    def call_with_retry(
        self,
        do: Callable[[], Any],
        fail: Callable[..., Any],
        is_retryable: Callable[[Exception], bool] | None = None,
        with_failure_count: bool = False,
    ) -> Any:
        if _verb.is_trying:
            return do()
        began = monotonic() if _verb.began is None else _verb.began

        def failed(error: Exception, failures: int) -> None:
            if with_failure_count:
                fail(error, failures)
            else:
                fail(error)
            if monotonic() - began > self._seconds:
                raise error

        _verb.is_trying = True
        try:
            return super().call_with_retry(do, failed, is_retryable, with_failure_count=True)
        finally:
            _verb.is_trying = False


@contextmanager
def redis_errors_translated() -> Iterator[None]:
    """Translate the errors of one operation. Its commands share the time that it may take."""
    if _verb.absence:
        raise QueueUnavailable(_verb.absence)
    before, _verb.began = _verb.began, monotonic()
    try:
        yield
    except RedisError as exc:
        absence = f"Redis: {type(exc).__name__}: {exc}"
        if _verb.remembers_absence:
            _verb.absence = absence
        raise QueueUnavailable(absence) from exc
    finally:
        _verb.began = before


@contextmanager
def absence_remembered() -> Iterator[None]:
    """For the operations of one page: after one found Redis away, the next ones of this thread fail at once.

    Not for workers: to skip a completion or a heartbeat would make an outage worse than it is.
    """
    _verb.remembers_absence, _verb.absence = True, None
    try:
        yield
    finally:
        _verb.remembers_absence, _verb.absence = False, None


def connect(url: str, timeout: float, *, tries: int) -> Redis:
    return Redis.from_url(
        url,
        connection_class=WarySSLConnection if url.startswith("rediss:") else WaryConnection,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        socket_keepalive=True,
        health_check_interval=30,
        retry=Patience(timeout, tries),
    )


@cache
def patient() -> Redis:
    conf = refresh_settings()
    return connect(conf.redis_url, conf.redis_timeout, tries=4)


@cache
def single() -> Redis:
    conf = refresh_settings()
    return connect(conf.redis_url, conf.redis_timeout, tries=1)
