"""The answer of a parent that was asked about its jobs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """`done`: how many jobs have ended, None if it cannot tell. `words`: its own word for its state."""

    done: int | None
    has_ended: bool
    words: str
