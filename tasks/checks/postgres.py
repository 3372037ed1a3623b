"""Checks of the PostgreSQL server and of our session there."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connection

from harbor_refresh.executions.attached.attachment import SCHEMA, SEARCH_PATH, is_attached
from harbor_refresh.executions.errors import DatabaseRefused, PoolerRefused
from harbor_refresh.tasks.checks.facts import Facts, place_of, rows, run
from harbor_refresh.tasks.checks.registry import PRESENT, Need, Shown, check

LONGEST_TIMEOUT_MS = 60_000
LONG_TRANSACTION = timedelta(minutes=10)


@check(
    "database.reachable",
    "PostgreSQL answers, and lets this program in",
    shown=(*PRESENT, Shown.ATTACH),
    answers_for=Need.DATABASE,
)
def reachable(facts: Facts) -> Iterator[CheckMessage]:
    exc, server = facts.absence(Need.DATABASE), connection.settings_dict
    place = place_of("DATABASE_URL")
    if isinstance(exc, PoolerRefused):
        alter = _alter_role(server["USER"] or "ROLE", server["NAME"] or "DATABASE")
        yield Error(
            f"A PgBouncer refuses the options of the connection. {exc}",
            hint=f"Set DATABASE_POOLED=true for every process, and type once: {alter}",
        )
    elif isinstance(exc, DatabaseRefused):
        yield Error(
            f"PostgreSQL answers and refuses this program. {exc}",
            hint=f"Correct the account, the password and the name of the database in {place}.",
        )
    elif exc:
        yield Error(
            f"PostgreSQL is away. {str(exc).rstrip('.')}.\nNo report can be stored and no status refreshed. What "
            "was committed is safe.",
            hint=f"Workers go on by themselves when it is back. Start it, or correct {place}. Look with: "
            f"{_pg_isready()}",
        )


@check("database.writable", "PostgreSQL takes writes", Need.DATABASE, shown=(Shown.DOCTOR, Shown.ATTACH))
def writable(facts: Facts) -> Iterator[CheckMessage]:
    state = facts.database
    if state.is_standby:
        yield Error("The server is a standby, which takes no writes.", "Name the primary in DATABASE_URL.")
    elif state.is_read_only:
        yield Error(
            "Transactions are read-only here, so nothing can be written.",
            f"ALTER ROLE {_quoted(state.role)} RESET default_transaction_read_only; and look at the same "
            "setting of the database and of the server.",
        )


@check("database.pooler", "the settings know of any pooler", Need.DATABASE)
def pooler(facts: Facts) -> Iterator[CheckMessage]:
    if facts.is_pooled and not getattr(settings, "DATABASE_POOLED", False):
        yield Error(
            "A pooler is in front of PostgreSQL, but DATABASE_POOLED is not set. If it pools by transaction, a "
            "server-side cursor ends with its transaction, so reading a long list fails in the middle.",
            "Set DATABASE_POOLED=true for every process. It works with every mode of the pooler.",
        )


@check("database.timeouts", "no transaction waits for a lock indefinitely", Need.DATABASE)
def timeouts(facts: Facts) -> Iterator[CheckMessage]:
    state = facts.database
    todo = _alter_role(state.role, state.database)
    if facts.is_pooled:
        todo += " Then type RECONNECT in the console of the pooler, or restart it: open sessions keep old values."
    if not 0 < state.lock_timeout <= LONGEST_TIMEOUT_MS:
        yield Error(
            f"Transactions wait {_time(state.lock_timeout)} for a locked row (lock_timeout), so one stopped "
            "process can hold up every report.",
            todo,
        )
    if not 0 < state.idle_timeout <= LONGEST_TIMEOUT_MS:
        yield Error(
            f"A process that hangs in a transaction keeps its locks {_time(state.idle_timeout)} "
            "(idle_in_transaction_session_timeout).",
            todo,
        )


@check("database.search_path", "if attached, the search path finds all tables", Need.DATABASE)
def search_path(facts: Facts) -> Iterator[CheckMessage]:
    if not is_attached():
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schemas(FALSE)")
        (schemas,) = cursor.fetchone()
    if schemas != SEARCH_PATH.split(","):
        yield Error(
            f"REFRESH_ATTACH is harbor, but the search path is {', '.join(schemas) or 'empty'} instead of "
            f"{SEARCH_PATH}. Our tables are in {SCHEMA}, Harbor's in public.",
            f"manage.py migrate makes the schema. {_alter_role(facts.database.role, facts.database.database)}",
        )


@check("database.durable", "committed data survives a crash", Need.DATABASE)
def durable(facts: Facts) -> Iterator[CheckMessage]:
    for name in (one for one in ("fsync", "full_page_writes") if not getattr(facts.database, one)):
        yield Error(
            f"{name} is off: a crash of the machine can destroy the database, which holds every status and "
            "report.",
            f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
        )


@check("database.activities", "reconcile can see open transactions", Need.DATABASE)
def activities(facts: Facts) -> Iterator[CheckMessage]:
    if not facts.database.tracks_activities:
        yield Warning(
            "track_activities is off, so reconcile cannot know how old the open transactions are: its watermark "
            "does not advance, and each pass reads more than the last.",
            "ALTER SYSTEM SET track_activities = on; SELECT pg_reload_conf();",
        )


@check("database.roles", "reconcile sees the transactions of every role", Need.DATABASE)
def other_roles(facts: Facts) -> Iterator[CheckMessage]:
    others = [role for (role,) in run("other_writers")]
    if others:
        yield Warning(
            f"{', '.join(others[:5])} {'uses' if len(others) == 1 else 'use'} this database too, and this role "
            "cannot see the transactions of other roles. Reconcile could miss a report that stays uncommitted for "
            "long.",
            f"GRANT pg_read_all_stats TO {_quoted(facts.database.role)};",
        )


@check("database.transactions", "no transaction is open for long", Need.DATABASE)
def long_transactions(facts: Facts) -> Iterator[CheckMessage]:
    for one in rows("long_transactions", longer_than=LONG_TRANSACTION):
        since = f"has been open for {timedelta(seconds=round(one.seconds))}"
        holds = "Until it ends, reconcile reads more in each pass, and autovacuum removes no row that it may see."
        if one.pid is None:
            yield Warning(
                f"The prepared transaction {one.name} {since}. {holds}",
                f"COMMIT PREPARED {_literal(one.name)}; or ROLLBACK PREPARED {_literal(one.name)};",
            )
        else:
            yield Warning(
                f"A transaction of {one.name} (process {one.pid}) {since}. {holds}",
                f"Look for it in pg_stat_activity; to end it: SELECT pg_terminate_backend({one.pid});",
            )


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _alter_role(role: str, database: str) -> str:
    """The statements that give each new session of this role what SESSION_OPTIONS say."""
    subject = f"ALTER ROLE {_quoted(role)} IN DATABASE {_quoted(database)} SET"
    wanted = getattr(settings, "SESSION_OPTIONS", {})
    # a search path in quotes would be the name of one schema
    values = {name: value if name == "search_path" else _literal(value) for name, value in wanted.items()}
    return " ".join(f"{subject} {name} = {value};" for name, value in values.items())


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s" if milliseconds else "indefinitely"


def _pg_isready() -> str:
    given = connection.settings_dict
    words = (("-h", given["HOST"]), ("-p", given["PORT"]))
    return " ".join(["pg_isready", *(f"{word} {value}" for word, value in words if value)])
