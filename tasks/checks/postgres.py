"""Checks of the PostgreSQL server, of our session there, and of our tables."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connection

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf.declarations import of_project
from harbor_refresh.executions.errors import DatabaseRefused, PoolerRefused
from harbor_refresh.executions.lifecycle.retention import Retention
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import FINAL
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.facts import Facts, place_of, run
from harbor_refresh.tasks.checks.registry import PRESENT, Server, Shown, check

LONGEST_TIMEOUT_MS = 60_000


@check(
    "database.reachable",
    "PostgreSQL answers, and lets this program in",
    shown=(*PRESENT, Shown.ATTACH),
    answers_for=Server.DATABASE,
)
def reachable(facts: Facts) -> Iterator[CheckMessage]:
    exc, server = facts.absence(Server.DATABASE), connection.settings_dict
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
            f"PostgreSQL is down. {str(exc).rstrip('.')}.\nNo report can be stored and no status refreshed. What "
            "was committed is safe.",
            hint=f"Workers go on by themselves when it is back. Start it, or correct {place}. Look with: "
            f"{_pg_isready()}",
        )


@check("database.writable", "PostgreSQL takes writes", Server.DATABASE, shown=(Shown.DOCTOR, Shown.ATTACH))
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
    elif not (state.may_report or is_attached()):  # attached, no report is taken, and rights have their own check
        yield Error(
            f"The role {state.role} may not change the table task, so no report can be stored.",
            f"Have their owner type: GRANT ALL ON ALL TABLES IN SCHEMA public TO {_quoted(state.role)};",
        )


@check(
    "database.isolation",
    "a transaction sees what others have committed",
    Server.DATABASE,
    shown=(Shown.DOCTOR, Shown.PROJECT),
)
def isolation(facts: Facts) -> Iterator[CheckMessage]:
    state = facts.database
    if state.isolation not in ("read committed", "read uncommitted"):  # which are the same in PostgreSQL
        yield Error(
            f"Transactions are {state.isolation.upper()} here.\nOne that waited for a lock does not see what the "
            "other has committed: a stop misses jobs that are added at that moment.",
            f'Write into OPTIONS, in {place_of("DATABASE_URL")}: "isolation_level": '
            "psycopg.IsolationLevel.READ_COMMITTED",
        )


@check("database.timeouts", "no transaction waits for a lock indefinitely", Server.DATABASE)
def timeouts(facts: Facts) -> Iterator[CheckMessage]:
    state = facts.database
    behind = "-- behind a PgBouncer, set DATABASE_POOLED=true as well, and type RECONNECT in its console"
    todo = f"{_alter_role(state.role, state.database)} {behind}"
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


@check("database.roles", "reconcile sees the transactions of every role", Server.DATABASE)
def other_roles(facts: Facts) -> Iterator[CheckMessage]:
    others = [role for (role,) in run("other_writers")]
    if others:
        yield Warning(
            f"{', '.join(others[:5])} {'uses' if len(others) == 1 else 'use'} this database too, and this role "
            "cannot see the transactions of other roles. Reconcile could miss a report that stays uncommitted for "
            "long.",
            f"GRANT pg_read_all_stats TO {_quoted(facts.database.role)};",
        )


@check("tables.migrations", "every migration is applied", Server.DATABASE, shown=PRESENT)
def migrations(facts: Facts) -> Iterator[CheckMessage]:
    if missing := facts.unapplied:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        yield Error(
            f"Migrations of this program are not applied to the database: {names}.\nNo execution can be started, "
            "no report stored and no status refreshed.",
            "manage.py migrate",
        )


@check("tables.readable", "our tables can be read", Server.DATABASE, shown=PRESENT, answers_for=Server.DATABASE)
def readable(facts: Facts) -> Iterator[CheckMessage]:
    reason = facts.state.absent.get("database")
    if reason and facts.state.is_migrated:
        yield Error(
            f"PostgreSQL answers, but does not let this program read its tables in time. {reason}",
            "Give the right that is missing, or look in pg_locks for what holds the table.",
        )


@check("tables.retention", "the project has chosen a retention", Server.DATABASE)
def retention(facts: Facts) -> Iterator[CheckMessage]:
    """Tell a project that keeps everything, unless it has said so (`RETENTION_DAYS` is 0)."""
    if "RETENTION_DAYS" in of_project() or not Retention.of_settings().keeps_everything:
        return
    if ended := Execution.objects.filter(status__in=FINAL).count():
        yield Warning(
            f"Nothing is deleted: {plural(ended, 'execution')} {'has' if ended == 1 else 'have'} ended and stay, "
            "with tasks, jobs and results, so the tables grow.",
            "Count what started more than 90 days ago: manage.py harbor delete --older-than 90d --dry-run. Then "
            'set the days kept after the end: HARBOR_REFRESH = {"RETENTION_DAYS": 90}, or 0 to keep everything.',
        )


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def _alter_role(role: str, database: str) -> str:
    """The statements that give each new session of this role what SESSION_OPTIONS say."""
    subject = f"ALTER ROLE {_quoted(role)} IN DATABASE {_quoted(database)} SET"
    wanted = getattr(settings, "SESSION_OPTIONS", {})
    # a search path in quotes would be the name of one schema
    values = {name: value if name == "search_path" else f"'{value}'" for name, value in wanted.items()}
    return " ".join(f"{subject} {name} = {value};" for name, value in values.items())


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s" if milliseconds else "indefinitely"


def _pg_isready() -> str:
    given = connection.settings_dict
    words = (("-h", given["HOST"]), ("-p", given["PORT"]))
    return " ".join(["pg_isready", *(f"{word} {value}" for word, value in words if value)])
