"""The moments at which statuses become true, as another connection sees them.

The watcher polls the history for new rows, because a trigger or a notification would add work to the measured
transaction. A change may have been visible POLL_SECONDS and one query earlier, so latencies may be that much too
long and are never too short.
"""

import time
from types import TracebackType
from typing import Self

import psycopg

POLL_SECONDS = 0.01
#: Transactions may commit in another order than that of their ids, so a missing id is asked for again. The id of a
#: transaction that was rolled back never comes, so only the newest gaps are kept.
MOST_GAPS = 10_000

NEW = """
SELECT id, execution_id FROM execution_status_change
WHERE id > %s OR id = ANY(%s) ORDER BY id
"""


class Watcher:
    """`seen` has the first moment at which a change of each execution was seen."""

    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.connect(database_url, autocommit=True)
        self._last = 0
        self._gaps: set[int] = set()
        self.seen: dict[int, float] = {}
        self.poll()
        self.seen.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def poll(self) -> None:
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
        time.sleep(POLL_SECONDS)
