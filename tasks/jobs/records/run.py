"""What a worker asks of Redis about a job, and what it holds while it runs one."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What becomes of a message, see lua/job_begin-3.lua."""

    GO = "go"
    ALIVE = "alive"
    OVER = "over"
    #: Said by the database alone: it has begun as often as it may, or the message is of another database.
    EXHAUSTED = "exhausted"
    FOREIGN = "foreign"


class Lease(StrEnum):
    """How Redis found a run that is under way, see `standing` in lua/_job.lua."""

    KNOWN = "known"
    FORGOTTEN = "forgotten"
    OTHER = "other"


@dataclass(frozen=True)
class Offer:
    """A message has come: run this job."""

    job: str
    task_id: int
    revision: int
    runs: int
    database: str = ""


@dataclass(frozen=True)
class Run:
    """One run of a job, which is its node's alone. If Redis forgets it, its record is written anew from this."""

    job: str
    task_id: int
    node: str
    revision: int
    runs: int

    @property
    def args(self) -> tuple[str | int, ...]:
        """As the scripts take it that may write its record anew."""
        return (self.job, self.task_id, self.node, self.revision, self.runs)


@dataclass(frozen=True)
class Begun:
    """The answer to an offer. `before` is the record that was there, for the run to be undone; `why` is said of a
    job that has ended with this. `arguments` are those of the run if its message is older than they are;
    `are_unreported` if the database does not know them yet."""

    verdict: Verdict
    run: Run
    before: str
    arguments: tuple[list[Any], dict[str, Any]] | None = None
    are_unreported: bool = False
    why: str = ""
