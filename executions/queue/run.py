"""What a worker asks of Redis about a job, and what it holds while it runs one."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What becomes of a message, see lua/job_begin-5.lua."""

    GO = "go"
    ASK = "ask"
    ALIVE = "alive"
    OVER = "over"
    STOPPED = "stopped"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True)
class Offer:
    """A message has come: run this job. `published` is 0 once the database has been asked."""

    job: str
    task_id: int
    revision: int
    runs: int
    most: int
    published: int

    @property
    def why_exhausted(self) -> str:
        return f"it has begun {self.runs_at_most}, which is as often as it may: see max_attempts"

    @property
    def runs_at_most(self) -> str:
        return "once" if self.most == 1 else f"{self.most} times"


@dataclass(frozen=True)
class Run:
    """One run of a job, which is its node's alone. `begun` is by Redis's clock, in microseconds: if Redis has been
    emptied since, the record is written anew from this."""

    job: str
    task_id: int
    node: str
    revision: int
    runs: int
    begun: int

    @property
    def args(self) -> tuple[str | int, ...]:
        """As `run_of` in lua/_job.lua takes it."""
        return (self.job, self.task_id, self.node, self.revision, self.runs, self.begun)
