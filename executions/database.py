"""How the use cases run a statement, and the one place where the database's errors become ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import Model

from executions import sql
from executions.errors import DatabaseAway

#: SQLSTATEs that speak of the server and not of a row: 08 connection, 53100 disk full, 53300 too many
#: connections, 57P shutting down or starting up, 25006 a standby that takes no writes, 25P03 a transaction
#: that slept too long. An error without a SQLSTATE is a connection that broke. Not the rest of class 53:
#: one execution can run out of memory or of temporary files all by itself.
AWAY = ("08", "53100", "53300", "57P", "25006", "25P03")


class WriterOnly:
    """Sends each read and write of the models of one app to the database that the statements use.

    A use case decides by what it reads, and a replica lags. So this router stands before those of the project
    (apps.py of either app), and answers for our models alone.
    """

    def __init__(self, app_label: str) -> None:
        self._app_label = app_label

    def db_for_read(self, model: type[Model], **_: Any) -> str | None:
        table = model._meta.concrete_model or model
        return DEFAULT_DB_ALIAS if table._meta.app_label == self._app_label else None

    db_for_write = db_for_read


class Statements:
    """The statements of a package: `NAME.sql` in its folder `sql`. Called, it runs the one of that name."""

    def __init__(self, package: str) -> None:
        self.package = package

    def __call__(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows, if it has any."""
        with connection.cursor() as cursor:
            cursor.execute(sql.text(self.package, name), {key: _bound(value) for key, value in values.items()})
            return cursor.fetchall() if cursor.description else []


run = Statements(__package__)


def _bound(value: Any) -> Any:
    """Whole numbers in a list go as one array literal: psycopg would adapt each of a thousand ids alone."""
    if isinstance(value, list) and set(map(type, value)) == {int}:
        return "{" + ",".join(map(str, value)) + "}"
    return value


def raise_if_away() -> None:
    """One look at the database before work is begun for it. One that takes no writes is away, too."""
    with absence_translated(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('transaction_read_only')")
        (read_only,) = cursor.fetchone()
    if read_only == "on":
        connection.close()
        raise DatabaseAway("PostgreSQL: it takes no writes; it is a standby, or read-only")


@contextmanager
def absence_translated() -> Iterator[None]:
    """A database that is away becomes DatabaseAway; an error about the work itself passes as it is.

    The broken connection is closed, so that the next attempt makes a new one.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as exc:
        state = getattr(exc.__cause__, "sqlstate", None)
        broken = state is None and isinstance(exc, OperationalError | InterfaceError)
        if not broken and not (state or "").startswith(AWAY):
            raise
        connection.close()
        raise DatabaseAway(f"PostgreSQL: {first_line(exc)}") from exc


def first_line(exc: Exception) -> str:
    """What the database says; what is behind it quotes the statement."""
    return str(exc).strip().splitlines()[0]
