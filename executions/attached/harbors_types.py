"""Read the types of Harbor's columns as our models have them, on each connection that is attached.

`timestamp` without a zone holds UTC: it becomes a moment with its zone. By the year 1 Harbor says that there is
none. `json` stays a text, which Django reads by itself; psycopg alone would have read it already.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg.types.datetime import TimestampLoader
from psycopg.types.string import TextLoader


class HarborsTime(TimestampLoader):
    def load(self, data: Any) -> datetime | None:  # type: ignore[override]
        moment = super().load(data)
        return None if moment.year == 1 else moment.replace(tzinfo=UTC)


def register(connection: Any) -> None:
    """Have this connection of Django read them so."""
    connection.connection.adapters.register_loader("timestamp", HarborsTime)
    connection.connection.adapters.register_loader("json", TextLoader)
