"""A schema and a Redis database of the bench's own, on existing servers.

Other data on those servers is neither read nor changed. `public` is not in the search path, because Django's
migrations would find the tables of an installation there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from redis import Redis, RedisError

from benchmarks.errors import BenchError
from harbor_refresh.tasks.broker.redis_address import for_celery, read_address

SCHEMA = "harbor_refresh_bench"
LOCK = 0x48524245  # the key of an advisory lock: without it, two runs would drop each other's schema
PATIENCE_SECONDS = 5


@contextmanager
def own_schema(url: str, options: str) -> Iterator[str]:
    """Yield the URL of a fresh schema in that database, and drop the schema at the end.

    `options` are the session parameters of the settings. They are put into the URL, because options of the URL
    replace those of the settings.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=PATIENCE_SECONDS)
    except psycopg.Error as exc:
        raise BenchError(
            f"DATABASE_URL is set, but no PostgreSQL answers there: {_line(exc)}. Start that server or "
            "correct the variable; without it, the bench starts a server of its own."
        ) from exc
    with connection:
        locked = connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        if not (locked and locked[0]):
            raise BenchError("Another bench is running in that database. Wait for its end.")
        try:
            _drop(connection)
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        except psycopg.Error as exc:
            raise BenchError(
                f"The bench works in a schema of its own, {SCHEMA}, and could not make it: {_line(exc)}. "
                "Grant the role CREATE on the database, or unset DATABASE_URL."
            ) from exc
        try:
            yield with_options(url, f"{options} -c search_path={SCHEMA}".strip())
        finally:
            try:
                _drop(connection)
            except psycopg.Error as exc:
                raise BenchError(
                    f"The schema {SCHEMA} could not be dropped: {_line(exc)}. Type: DROP SCHEMA {SCHEMA} CASCADE"
                ) from exc


def _drop(connection: psycopg.Connection) -> None:
    connection.execute("SET lock_timeout = '10s'")
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def with_options(url: str, options: str) -> str:
    """Replace the URL's session parameters. Spaces become %20, because libpq does not read + as a space."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "options"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("options", options)], quote_via=quote)))


@contextmanager
def own_redis(url: str, number: int) -> Iterator[str]:
    """Yield the URL of that database, which must be empty, and empty it at the end."""
    address = read_address(url)
    if address.primary:
        raise BenchError("REDIS_URL is behind Sentinel. The bench measures one server: name that.")
    # without TLS, the address that Celery takes is without the options that only Harbor's client knows
    own = urlunsplit(urlsplit(url if address.tls else for_celery(url).url)._replace(path=f"/{number}"))
    with Redis.from_url(own, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS) as client:
        try:
            keys = client.dbsize()
        except RedisError as exc:
            raise BenchError(
                f"REDIS_URL is set, but Redis has no database {number} for us there: {_line(exc)}. Start that "
                "server, correct the variable or name another with --redis-db; without it, the bench "
                "starts a server of its own."
            ) from exc
        if keys:
            raise BenchError(
                f"Redis database {number} is not empty ({keys:,} keys), and the bench empties the one it works "
                "in. Name an empty one: --redis-db N"
            )
        try:
            yield own
        finally:
            try:
                client.flushdb()
            except RedisError as exc:
                raise BenchError(
                    f"Redis database {number} could not be emptied: {_line(exc)}. "
                    f"Type: redis-cli -n {number} flushdb"
                ) from exc


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
