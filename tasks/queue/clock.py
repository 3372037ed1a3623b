"""The clock of Redis, as a moment: what it is compared with is of the same clock."""

from datetime import UTC, datetime


def at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
