"""Sees statuses become true, as anybody else would who asks the database.

Asked every LOOK_SECONDS for the rows of the history that are new: neither a trigger nor a notification is
put into the transaction that is measured. So what is seen was true up to LOOK_SECONDS and one question
earlier: latencies are too long by that, never too short.
"""

import time
from types import TracebackType
from typing import Self

import psycopg

LOOK_SECONDS = 0.01
#: Transactions commit in another order than they took their ids: an id that was passed over may yet come.
#: Those of transactions that were rolled back never do.
MOST_GAPS = 10_000

NEW = """
SELECT id, execution_id FROM execution_status_change
WHERE id > %s OR id = ANY(%s) ORDER BY id
"""


class Watcher:
    """`seen`: execution id → the first moment its change was seen."""

    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.connect(database_url, autocommit=True)
        self._last = 0
        self._gaps: set[int] = set()
        self.seen: dict[int, float] = {}
        self.look()
        self.seen.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def look(self) -> None:
        rows = self._connection.execute(NEW, [self._last, list(self._gaps)]).fetchall()
        moment = time.monotonic()
        for change, execution in rows:
            self.seen.setdefault(execution, moment)
            self._gaps.discard(change)
            if change > self._last:
                self._gaps.update(range(self._last + 1, change))
                self._last = change
        if len(self._gaps) > MOST_GAPS:
            self._gaps = set(sorted(self._gaps)[-MOST_GAPS:])

    def wait(self) -> None:
        time.sleep(LOOK_SECONDS)
