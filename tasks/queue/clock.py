"""Moments of the clock of Redis. Compare them only with moments of the same clock."""

from datetime import UTC, datetime


def at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
