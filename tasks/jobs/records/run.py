"""The values that a worker exchanges with Redis about a job: the received message, the run, the answer."""

from dataclasses import dataclass
from enum import StrEnum

from harbor_refresh.tasks.jobs.records.arguments import Arguments


class Verdict(StrEnum):
    """The decision about a message, see lua/job_begin-4.lua."""

    GO = "go"
    ALIVE = "alive"
    OVER = "over"
    #: The database decides these two: the job has begun as often as it may; the message is for another database.
    EXHAUSTED = "exhausted"
    FOREIGN = "foreign"


class LeaseAnswer(StrEnum):
    """How Redis found a run that is under way, see `standing` in lua/_job.lua."""

    KNOWN = "known"
    FORGOTTEN = "forgotten"
    OTHER = "other"


@dataclass(frozen=True)
class ReceivedMessage:
    """A message that has come to a worker: run this job."""

    job: str
    task_id: int
    revision: int
    runs: int
    database: str = ""
    #: The revision of its arguments, see arguments.py.
    arguments_revision: int = 0


@dataclass(frozen=True)
class Run:
    """One run of a job. It belongs to its node alone. If Redis loses its record, it is written again from this."""

    job: str
    task_id: int
    node: str
    revision: int
    runs: int

    @property
    def named(self) -> dict[str, str | int]:
        """The arguments of the scripts that may write its record again."""
        return {
            "job": self.job,
            "task": self.task_id,
            "node": self.node,
            "revision": self.revision,
            "runs": self.runs,
        }


@dataclass(frozen=True)
class Begun:
    """The answer to a received message. `before` is the record that was there; to undo the run, it is restored.
    `requested` is what Redis has of the arguments that the job asked for. `arguments` are those of the run, if its
    message is older than they are; `are_unreported` is true if the database has older ones than the run. `why` is
    the reason if the job ends with this message."""

    verdict: Verdict
    run: Run
    before: str
    requested: Arguments | None = None
    arguments: Arguments | None = None
    are_unreported: bool = False
    why: str = ""
