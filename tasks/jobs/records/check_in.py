"""Check-ins: what a job says of its progress while it runs.

A check-in is the message of the record of its run (record.py), also with numbers. So numbers cost no command, no
statement and no column. Each check-in replaces the one before it, and the last one is gone when the run ends.
"""

import re
from dataclasses import dataclass
from typing import Any, Self

from harbor_refresh.executions.text import is_whole, made_storable, shown
from harbor_refresh.tasks.jobs.records.record import MAX_MESSAGE

#: Counts bytes as well. Every program that reads JSON knows this number exactly.
MAX_OF = 10**15
WITH_NUMBERS = re.compile(r"check-in ([0-9]{1,16})/([0-9]{1,16}): (.*)", re.DOTALL)


@dataclass(frozen=True)
class CheckIn:
    """`done` and `of` are both None if the job gave no numbers."""

    message: str = ""
    done: int | None = None
    of: int | None = None

    @classmethod
    def made(cls, message: str, done: Any, of: Any) -> Self:
        """Return a check-in of these values. Raises ValueError for numbers that are no progress."""
        if (done is not None or of is not None) and not _is_progress(done, of):
            raise ValueError(
                "check_in takes done and of together, whole numbers with 0 <= done <= of <= 10^15, "
                f"and got done={shown(done)}, of={shown(of)}"
            )
        return cls(made_storable(message)[:MAX_MESSAGE], done, of)

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the check-in that a record's message is. Another program may have written it."""
        if (found := WITH_NUMBERS.fullmatch(text)) and _is_progress(done := int(found[1]), of := int(found[2])):
            return cls(found[3], done, of)
        return cls(text)

    @property
    def text(self) -> str:
        """The message of the record."""
        return self.message if self.of is None else f"check-in {self.done}/{self.of}: {self.message}"

    @property
    def share(self) -> float | None:
        """The share that is done, 0 to 1; None without numbers. Of nothing, all is done."""
        return None if self.done is None or self.of is None else self.done / self.of if self.of else 1.0


def _is_progress(done: Any, of: Any) -> bool:
    return is_whole(of, 0, MAX_OF) and is_whole(done, 0, of)
