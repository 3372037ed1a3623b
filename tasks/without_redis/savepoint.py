"""The savepoint around each job, callback and handler in eager mode: it may run in the transaction of a caller."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

#: Of a connection whose transaction PostgreSQL has given up, by libpq's number.
IN_ERROR = 3


@contextmanager
def with_savepoint() -> Iterator[None]:
    """In the transaction of a caller, keep what the code writes, as a worker would, until PostgreSQL refuses a
    statement: then take it all back, because the transaction could do nothing more."""
    if not connection.in_atomic_block:
        yield
        return
    savepoint = transaction.savepoint()
    try:
        yield
    except BaseException:
        _end(savepoint)
        raise
    _end(savepoint)


def _end(savepoint: str) -> None:
    # atomic() leaves a mark if it could not roll back to a savepoint of its own
    if connection.needs_rollback or connection.connection.info.transaction_status == IN_ERROR:
        connection.needs_rollback = False
        transaction.savepoint_rollback(savepoint)
    else:
        transaction.savepoint_commit(savepoint)
