"""The connection to Redis, and the one place where its errors become ours.

Two clients, because a verb may or may not be sent twice. Adding, completing and looking are the same done
twice, so the `patient` client tries again over a new connection. A claim that is sent twice would take two
batches, so the `single` client never repeats: it fails, and the node starts a new life.

A server that answers and does not serve counts as one that is away (`NotServing`).
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

#: The server is not the one to ask: it is a replica, or lost its primary or its cluster, or was demoted while the
#: client waited. (To one that still loads its data the library gives an error of the connection.)
ELSEWHERE = ("READONLY", "MASTERDOWN", "CLUSTERDOWN", "UNBLOCKED")
#: The server is the one to ask and refuses: it is full, cannot save, has too few replicas, or runs a long script.
REFUSED = ("OOM", "MISCONF", "NOREPLICAS", "BUSY")
#: The code begins the answer. EXEC puts words of its own before it, and so does Redis before 7 in a script.
_CODE = re.compile(
    rf"(?:(?:EXECABORT|ERR Error running script).*: -?)?({'|'.join(ELSEWHERE + REFUSED)}) ", re.DOTALL
)

#: A verb begins no other attempt after so many times the time that one answer may take.
PATIENCE = 1.5


class NotServing(ResponseError):
    """The server answers, and serves nothing at the moment."""


class WrongServer(NotServing):
    """Another server serves in its place: a new connection may lead there."""


class _Wary:
    """A connection that is made anew after the answer of a wrong server."""

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
    """What this thread is asking of Redis."""

    began: float | None = None
    is_trying = False
    remembers_absence = False
    absence: str | None = None


_verb = _Verb()


class Patience(Retry):
    """Tries again, so often at most, and only while the verb's time lasts.

    The library asks for retries in connecting and in the checks of a connection as well, inside those of the
    command: four times four attempts. Inside an attempt there is only one.
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
    """Around one verb: its commands share the time that it may take."""
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
    """Around the verbs of one page: after one has found Redis away, the others of this thread fail without asking.

    Not for workers: a completion or a sign of life that is not tried makes more of an outage than it is.
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
