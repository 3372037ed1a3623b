"""The connection to Redis, and the only place where its errors become ours: a `Client` raises QueueUnavailable.

There are two clients, because only some operations may be sent twice. To add, complete and look is idempotent, so
the `patient` client tries again over a new connection. A claim sent twice would take two batches, so the `single`
client never repeats: it fails, and the node takes a new name.

A server that answers but does not serve counts as down (`NotServing`).
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any, cast

import redis
from django.http import HttpRequest, HttpResponse
from redis import ConnectionPool, Redis, RedisError, ResponseError, exceptions
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.retry import Retry
from redis.sentinel import (
    MasterNotFoundError,
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from harbor_refresh.executions.errors import QueueRefused, QueueRightMissing, QueueUnavailable
from harbor_refresh.tasks.broker.redis_address import Place, read_address
from harbor_refresh.tasks.conf import pacing, refresh_settings

#: Another server should be asked: this one is a replica, lost its primary, or was demoted while the client waited.
#: (While a server loads its data, the library raises a connection error.)
ELSEWHERE = ("READONLY", "MASTERDOWN", "UNBLOCKED")
#: This server should be asked, and refuses: it is full, cannot save, has too few replicas, or runs a long script.
REFUSED = ("OOM", "MISCONF", "NOREPLICAS", "BUSY")
#: The answer starts with the code. EXEC puts words of its own before it, and so does Redis before 7 in a script.
_CODE = re.compile(
    rf"(?:(?:EXECABORT|(?:ERR )?Error running script).*: -?)?({'|'.join(ELSEWHERE + REFUSED)}) ", re.DOTALL
)

#: Versions of the library before `status_code` cut the code off these answers; the class still tells it.
_CODE_OF = {
    exceptions.ReadOnlyError: "READONLY",
    exceptions.MasterDownError: "MASTERDOWN",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ExecAbortError: "EXECABORT",
}

#: The server answers, and refuses this client.
NOT_PERMITTED = exceptions.NoPermissionError
NOT_ADMITTED = (exceptions.AuthenticationError, exceptions.AuthorizationError, NOT_PERMITTED)
#: What a server says if it refuses a command inside a script, where the answer has no class of its own.
NOT_ADMITTED_IN_A_SCRIPT = re.compile(
    r"ACL failure in script|user executing the script can't (run|access)|NOPERM", re.IGNORECASE
)

#: After so many times the timeout of one answer, a command is not tried again. So a server that hangs is tried
#: twice, or once behind Sentinels that hang as well.
PATIENCE = 1.5
#: How long a look that many pages share may wait for a connection, and for an answer.
BRIEF_SECONDS = 0.5
#: The part of the timeout of one answer that a Sentinel has to name the primary.
SENTINEL_SHARE = 0.5
#: So many Sentinels are asked for one connection, because each may hang. The others come first the next time.
MOST_ASKED = 3


class NotServing(ResponseError):
    """The server answers, but serves nothing at the moment."""


class WrongServer(NotServing):
    """Another server serves in its place; a new connection may reach that one."""


class _Verb(threading.local):
    """The Redis operation that this thread is in; within `absence_remembered`, why a server is down."""

    is_trying = False
    absences: dict[tuple[Place, ...], str] | None = None


_verb = _Verb()


class _Rerouting:
    """A connection that reconnects after an answer of the wrong server."""

    disconnect: Callable[[], None]

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().read_response(*args, **kwargs)  # type: ignore[misc]
        except ResponseError as exc:
            answer = _with_code(exc)
            if (found := _CODE.match(answer)) is None:
                raise
            if found[1] in REFUSED:
                raise NotServing(answer) from exc
            # early versions of the library can only disconnect at once, and then lose the rest of a pipeline
            getattr(self, "mark_for_reconnect", self.disconnect)()
            raise WrongServer(answer) from exc


class ReroutingConnection(_Rerouting, redis.Connection):
    pass


class ReroutingSSLConnection(_Rerouting, redis.SSLConnection):
    pass


class ReroutingSentinelConnection(_Rerouting, SentinelManagedConnection):
    pass


class ReroutingSentinelSSLConnection(_Rerouting, SentinelManagedSSLConnection):
    pass


def _with_code(error: ResponseError) -> str:
    """Return the answer of the server as it was on the wire."""
    code = getattr(error, "status_code", None) or _CODE_OF.get(type(error))
    return f"{code} {error}" if code else str(error)


class Sentinels(Sentinel):
    """Each search has its own connections and closes them, because other threads search at the same time, and a
    forked process must inherit none. A Sentinel that did not name the primary is asked last from then on."""

    def __init__(self, places: Sequence[Place], options: Mapping[str, Any]) -> None:
        super().__init__([])  # type: ignore[no-untyped-call]
        self.places, self._options = [*places], options

    def discover_master(self, service_name: str) -> Any:
        failures: list[str] = []
        for place in self.places[:MOST_ASKED]:
            try:
                with Redis(*place, **self._options) as asked:
                    state: Any = asked.sentinel_masters().get(service_name)
                if state and self.check_master_state(state, service_name):  # type: ignore[no-untyped-call]
                    return state["ip"], state["port"]
            except NOT_ADMITTED:
                raise
            except (exceptions.ConnectionError, exceptions.TimeoutError) as exc:
                failures.append(f"{place.host}:{place.port}: {exc}")
            self.places = [*(one for one in self.places if one != place), place]
        raise MasterNotFoundError(f"No master found for {service_name!r} ({'; '.join(failures)})")


#: After these, an operation is tried again.
PASSING = (exceptions.ConnectionError, exceptions.TimeoutError, TimeoutError, WrongServer)


class Patience(Retry):
    """Retry up to a number of tries, and a server that hangs once. The library also retries inside an attempt,
    while it connects or checks a connection; that would be four times four attempts, so this class does not."""

    def __init__(self, timeout: float, tries: int) -> None:
        backoff = ExponentialBackoff(cap=0.5, base=0.02) if tries > 1 else NoBackoff()
        super().__init__(backoff, tries - 1, PASSING)
        self._seconds = PATIENCE * timeout

    def call_with_retry(
        self, do: Callable[[], Any], fail: Callable[..., Any], *further: Any, **options: Any
    ) -> Any:
        """`further`, `options`: arguments that versions of the library after 6.1 add. With some of them, it also
        counts the failures for `fail`."""
        if _verb.is_trying:
            return do()
        began = monotonic()

        def failed(error: Exception, *count: int) -> None:
            fail(error, *count)
            if monotonic() - began > self._seconds:
                raise error

        _verb.is_trying = True
        try:
            return super().call_with_retry(do, failed, *further, **options)
        finally:
            _verb.is_trying = False


class Client(Redis):
    """Its errors are ours, but for those of a pipeline."""

    places: tuple[Place, ...]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        absences = _verb.absences
        if absences and self.places in absences:
            raise QueueUnavailable(absences[self.places])
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except exceptions.NoScriptError:
            raise  # the library loads the script
        except RedisError as exc:
            error = _kind_of(exc)(f"Redis: {type(exc).__name__}: {exc}")
            if absences is not None:
                absences[self.places] = str(error)
            raise error from exc


def _kind_of(exc: RedisError) -> type[QueueUnavailable]:
    if isinstance(exc, exceptions.NoPermissionError) or NOT_ADMITTED_IN_A_SCRIPT.search(str(exc)):
        return QueueRightMissing
    return QueueRefused if isinstance(exc, NOT_ADMITTED) else QueueUnavailable


@contextmanager
def absence_remembered() -> Iterator[None]:
    """For the operations of one page: after one found a Redis down, the next ones of this thread fail at once. Not
    for workers, which must not skip a completion or a heartbeat."""
    before = _verb.absences
    _verb.absences = {} if before is None else before
    try:
        yield
    finally:
        _verb.absences = before


class WaitsOnce:
    """Middleware: a request waits for an absent Redis once, however many operations it makes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with absence_remembered():
            return self._get_response(request)


def connect(url: str, timeout: float, *, tries: int) -> Client:
    address = read_address(url)
    options: dict[str, Any] = {
        **address.login,
        **(address.tls or {}),
        **_timeouts(timeout),
        "db": address.number,
        "socket_keepalive": True,
        "health_check_interval": 30,
        "retry": Patience(timeout, tries),
        "retry_on_error": [*PASSING],  # before 6, redis-py asks for them here as well
    }
    has_tls = address.tls is not None
    if not address.primary:
        made: type[redis.Connection] = ReroutingSSLConnection if has_tls else ReroutingConnection
        pool = ConnectionPool(**options, **address.places[0]._asdict(), connection_class=made)
    else:
        made = ReroutingSentinelSSLConnection if has_tls else ReroutingSentinelConnection
        pooled: Any = SentinelConnectionPool  # the library does not give its type
        sentinels = Sentinels(address.places, address.of_sentinels | of_sentinels(timeout))
        pool = pooled(address.primary, sentinels, **options, connection_class=made)
    client = cast("Client", Client.from_pool(pool))
    client.places = address.places
    return client


def of_sentinels(timeout: float) -> dict[str, Any]:
    """Return the options of a connection to a Sentinel: it gets a part of the time, once."""
    return {**_timeouts(timeout * SENTINEL_SHARE), "retry": Retry(NoBackoff(), 0)}


def _timeouts(seconds: float) -> dict[str, float]:
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds}


@cache
def patient() -> Client:
    return connect(refresh_settings().redis_url, pacing.REDIS_TIMEOUT_SECONDS, tries=4)


@cache
def single() -> Client:
    return connect(refresh_settings().redis_url, pacing.REDIS_TIMEOUT_SECONDS, tries=1)


@cache
def brief() -> Client:
    return connect(refresh_settings().redis_url, BRIEF_SECONDS, tries=1)
