"""Run the statements of the use cases; the one place that translates the database's errors into ours."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connection, connections
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, Value

from harbor_refresh.executions import sql
from harbor_refresh.executions.attached.attachment import HARBORS_MODELS, is_attached
from harbor_refresh.executions.errors import (
    DatabaseDown,
    DatabaseRefused,
    NotMigrated,
    PoolerRefused,
    RightMissing,
    TableLocked,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

#: The role lacks a right, so every row would fail, and none is at fault.
RIGHT_MISSING = "42501"
#: SQLSTATEs that describe the server and not a row: 08 connection, 53100 disk full, 53300 too many
#: connections, 57P shutting down or starting up, 25006 a standby that takes no writes, 25P03 a transaction
#: that was idle too long. An error without a SQLSTATE is a broken connection. The rest of class 53 is not
#: in the list, because a single execution can exhaust memory or temporary files.
DOWN = ("08", "53100", "53300", "57P", "25006", "25P03", RIGHT_MISSING)
#: A lock was not free within `lock_timeout`.
LOCK_TIMEOUT = "55P03"
#: What passes by itself: a row stayed locked, a deadlock, a statement that was cancelled because it took too long.
PASSING = (LOCK_TIMEOUT, "40P01", "57014")
#: A table or a column does not exist.
MISSING = ("42P01", "42703")
#: A function does not exist. It is ours if its name has this.
FUNCTION_MISSING, IN_OUR_FUNCTIONS = "42883", "execution_"
#: A row names one that is not there, or that is being deleted.
REFERENCE = "23503"
NAMED = "a row of the project names it: delete that row first, or let it name nothing"
HELD = "another transaction has held the row for too long, or the statement took too long"

#: A connection that was refused has no SQLSTATE in libpq, only a text. A server that speaks another language than
#: English counts as down, which is true enough.
REFUSED = re.compile(
    r"authentication failed|no password supplied|(role|user|database) \".*\" does not exist|no pg_hba\.conf entry"
    r"|not permitted to log in|permission denied for database|not currently accepting connections"
    r"|no such (user|database)|does not support SSL|certificate verify failed",
    re.IGNORECASE,
)
#: What PostgreSQL says of Harbor's tables to a role that has no right to their schema: it does not search there.
UNSEEN = re.compile(r'relation "(execution|task)" does not exist')
#: What PgBouncer says to `lock_timeout` in the options of a connection.
POOLER_REFUSED = re.compile(r"unsupported startup parameter", re.IGNORECASE)


class Router:
    """Route each read and write of one app's models to the database that the statements use: a use case decides by
    what it reads, and a replica lags. Make no table in a database that is no PostgreSQL, and leave Harbor's tables
    alone, whatever a migration says of their models. Each app (apps.py) puts it before the routers of the
    project."""

    def __init__(self, app_label: str) -> None:
        self._app_label = app_label

    def db_for_read(self, model: type[Model], **_: Any) -> str | None:
        table = model._meta.concrete_model or model
        return DEFAULT_DB_ALIAS if table._meta.app_label == self._app_label else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **_: Any) -> bool | None:
        is_harbors = model_name in HARBORS_MODELS and is_attached()
        is_refused = is_harbors or connections[db].vendor != connection.vendor
        return False if app_label == self._app_label and is_refused else None


class Statements:
    """The statements of a package: `NAME.sql` in its folder `sql`. A call with a name runs that statement."""

    def __init__(self, package: str) -> None:
        self.package = package

    def __call__(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run the statement; return its rows, if it has any."""
        with connection.cursor() as cursor:
            cursor.execute(sql.text(self.package, name), {key: _bound(value) for key, value in values.items()})
            # its `description` makes an object for each column, which takes as long as the rows
            return cursor.fetchall() if cursor.pgresult.nfields else []


run = Statements(__package__)


def _bound(value: Any) -> Any:
    """Bind a list of whole numbers as one array literal, because psycopg would adapt each number separately."""
    return array(value) if isinstance(value, list) and set(map(type, value)) == {int} else value


def array(values: Iterable[float | str]) -> str:
    """Return PostgreSQL's text of an array of numbers or plain words."""
    return "{" + ",".join(map(str, values)) + "}"


def among(ids: Iterable[int], column: str = "pk") -> Q:
    """Match the rows with these ids. They are bound as one array, because thousands of them are slow to adapt. An
    index looks the array up in its order; the ids of a subquery would be hashed, and looked up one by one."""
    words = {"template": "%(expressions)s::bigint[])", "arg_joiner": " = ANY("}
    return Q(Func(F(column), Value(array(ids)), output_field=BooleanField(), **words))


def set_limit(setting: str, limit: str) -> None:
    """Set a limit of PostgreSQL for the rest of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, TRUE)", [setting, limit])


def allow_long_statements() -> None:
    """Give the rest of this transaction the time of a worker, also in a web process: a stop, a retry or a deletion
    writes each task of an execution, and there may be a million. A project's limits are its own."""
    if limit := getattr(settings, "LONG_STATEMENT_TIMEOUT", ""):
        set_limit("statement_timeout", limit)


def distinct(rows: QuerySet[Any], column: str) -> Iterator[str]:
    """Yield the values of a column in order, by one look-up for each in an index that begins with the column."""
    found = rest = rows.order_by(column).values_list(column, flat=True)
    while (value := rest.first()) is not None:
        yield value
        rest = found.filter(**{f"{column}__gt": value})


def delete_first(rows: QuerySet[Any], at_most: int) -> int:
    """Delete the first of these rows, in their order and in the caller's transaction; return how many. Rows that
    another transaction has locked are in use, or are being deleted, so they stay."""
    ids = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True)[:at_most])
    return rows.model._default_manager.filter(pk__in=ids)._raw_delete(using=DEFAULT_DB_ALIAS) if ids else 0


@contextmanager
def absence_translated() -> Iterator[None]:
    """Raise DatabaseDown if the database is down; an error about the work itself passes unchanged. DatabaseRefused
    (it answers and refuses the connection) and TableLocked (another transaction holds a whole table, as a
    migration does) are DatabaseDown as well: a worker waits for each, and a command tells a person which it is.

    The broken connection is closed, so that the next attempt makes a new one.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as exc:
        state = sqlstate(exc)
        if state == LOCK_TIMEOUT and _names_a_table(exc):
            raise TableLocked(f"PostgreSQL: another transaction holds a table: {first_line(exc)}") from exc
        broken = state is None and isinstance(exc, OperationalError | InterfaceError)
        lacks_right = state == RIGHT_MISSING or (is_attached() and UNSEEN.match(str(exc)) is not None)
        if not broken and not lacks_right and not (state or "").startswith(DOWN):
            raise
        connection.close()
        kind = RightMissing if lacks_right else _absence(str(exc) if broken else "")
        raise kind(f"PostgreSQL: {first_line(exc)}") from exc


@contextmanager
def missing_translated() -> Iterator[None]:
    """Raise NotMigrated if a table, a column or a function of ours does not exist."""
    try:
        yield
    except DatabaseError as exc:
        is_function = sqlstate(exc) == FUNCTION_MISSING and IN_OUR_FUNCTIONS in str(exc)
        if sqlstate(exc) not in MISSING and not is_function:
            raise
        raise NotMigrated(f"PostgreSQL: {first_line(exc)}. {NotMigrated.__doc__}") from exc


def sqlstate(exc: Exception) -> str | None:
    return getattr(exc.__cause__, "sqlstate", None)


def _names_a_table(exc: Exception) -> bool:
    """Whether a lock that was not free is that of a table, and not of a row. A table is locked while the statement
    is parsed, so PostgreSQL says where the statement names it. A function whose plan is kept has no such place."""
    found = getattr(exc.__cause__, "diag", None)
    return found is not None and (found.statement_position or found.internal_position) is not None


def _absence(text: str) -> type[DatabaseDown]:
    """The error for the text of a connection that was not made."""
    if POOLER_REFUSED.search(text):
        return PoolerRefused
    return DatabaseRefused if REFUSED.search(text) else DatabaseDown


def violates(exc: Exception, constraint: str) -> bool:
    """Whether the database refused because of this constraint."""
    found = getattr(exc.__cause__, "diag", None)
    return found is not None and found.constraint_name == constraint


def first_line(exc: Exception) -> str:
    """The first line of a database error is its message; the lines after it quote the statement."""
    return str(exc).strip().partition("\n")[0]


def in_halves(
    do: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    refusals: tuple[type[Exception], ...] = (DatabaseError,),
) -> Iterator[tuple[Sequence[Item], Result | Exception]]:
    """Do it with all items, in one transaction of `do`. If the database refuses, do it with each half, until a
    refused item is alone. Yields each part, in order, with its result, or a refused item with the error. Raises
    DatabaseDown if the database is down, because no item is at fault.

    A deferred constraint refuses at the commit, so it is isolated only if the caller is in no transaction.
    """
    try:
        with absence_translated():
            result = do(items)
    except DatabaseDown:
        raise
    except refusals as exc:
        if len(items) <= 1:
            yield items, exc
            return
        middle = len(items) // 2
        yield from in_halves(do, items[:middle], refusals)
        yield from in_halves(do, items[middle:], refusals)
    else:
        yield items, result


def sized_pages(items: Iterable[tuple[Item, int]], most: int, *, count: int | None = None) -> Iterator[list[Item]]:
    """Group items into pages of at most `most` in size and `count` in number. A larger item is its own page."""
    page: list[Item] = []
    total = 0
    for item, size in items:
        if page and (len(page) == count or total + size > most):
            yield page
            page, total = [], 0
        page.append(item)
        total += size
    if page:
        yield page
