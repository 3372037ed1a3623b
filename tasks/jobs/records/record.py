"""What Redis knows of a job in progress, in one line of text.

`REVISION|STATUS|RUNS|CHECKED_IN|RENEWED|NODE|TASK|ACKNOWLEDGED|SENT|ASKED|MESSAGE`

| part           | is                                                                                     |
| -------------- | -------------------------------------------------------------------------------------- |
| `REVISION`     | the run, as in reports                                                                 |
| `STATUS`       | of that run                                                                            |
| `RUNS`         | how often it has begun                                                                 |
| `CHECKED_IN`   | when it last said something, in microseconds of Redis's clock; ahead, if it runs later |
| `RENEWED`      | when its process last renewed its lease: it lives, and has this run under way          |
| `NODE`         | the process that runs it; empty while it waits                                         |
| `TASK`         | the row its reports are for                                                            |
| `ACKNOWLEDGED` | `REVISION STATUS CHECKED_IN` of what has landed in the database; empty before          |
| `SENT`         | 0 if it waits and its message must be published again                                  |
| `ASKED`        | 1 if it was asked to stop                                                              |
| `MESSAGE`      | the last one, which becomes the status message of the task                             |
"""

from dataclasses import dataclass, replace
from typing import Self

from executions.status import CODES, MAX_ID, MAX_REVISION, Status, is_final

MAX_MESSAGE = 2_000
#: The node of a run that the database knows of and Redis does not. The process that has it, if one has, says so.
UNKNOWN = "unknown"


@dataclass(frozen=True, order=True)
class Progress:
    """How far a job is: what is later is greater, by revision, then status code, then check-in."""

    revision: int
    code: int
    checked_in: int


@dataclass(frozen=True)
class Acknowledged:
    revision: int
    status: str
    checked_in: int

    @property
    def progress(self) -> Progress:
        return Progress(self.revision, CODES[self.status], self.checked_in)


@dataclass(frozen=True)
class JobRecord:
    job: str
    revision: int
    status: str
    runs: int
    checked_in: int
    node: str
    task_id: int
    acknowledged: Acknowledged | None
    sent: bool
    message: str
    renewed: int = 0
    asked: bool = False

    @classmethod
    def read(cls, job: str, text: str) -> Self | None:
        """None if it cannot be read: somebody else wrote it."""
        parts = text.split("|", 10)
        try:
            revision, status, runs, checked_in, renewed, node, task, acknowledged, sent, asked, message = parts
            if status not in CODES or not {sent, asked} <= {"0", "1"}:
                return None
            record = cls(
                job,
                int(revision),
                status,
                int(runs),
                int(checked_in),
                node,
                int(task),
                _acknowledged(acknowledged),
                sent == "1",
                message,
                int(renewed),
                asked == "1",
            )
        except ValueError:
            return None
        is_ours = record.text == text and 0 < record.task_id <= MAX_ID and record.revision <= MAX_REVISION
        return record if is_ours else None

    @property
    def text(self) -> str:
        landed = self.acknowledged
        acknowledged = f"{landed.revision} {landed.status} {landed.checked_in}" if landed else ""
        return (
            f"{self.revision}|{self.status}|{self.runs}|{self.checked_in}|{self.renewed}|{self.node}|{self.task_id}"
            f"|{acknowledged}|{int(self.sent)}|{int(self.asked)}|{self.message}"
        )

    @property
    def progress(self) -> Progress:
        return Progress(self.revision, CODES[self.status], self.checked_in)

    @property
    def has_landed(self) -> bool:
        """This status in this revision; a check-in since is no report."""
        landed = self.acknowledged
        return landed is not None and (landed.revision, landed.status) == (self.revision, self.status)

    @property
    def is_final(self) -> bool:
        return is_final(self.status)

    @property
    def earlier_runs(self) -> int:
        """Those before the run of this revision, which has begun unless it waits."""
        waits = CODES[self.status] < CODES[Status.RUNNING]
        return self.runs if waits else max(0, self.runs - 1)

    @property
    def is_running(self) -> bool:
        return bool(self.node) and not self.is_final

    def waiting(self, now: int, revision: int, status: str = "Pending") -> Self:
        """As it is after its run was given back: it waits in this revision, and has no message yet."""
        return replace(
            self,
            revision=revision,
            status=status,
            checked_in=now,
            renewed=0,
            node="",
            sent=False,
            asked=False,
            message="",
        )


def _acknowledged(text: str) -> Acknowledged | None:
    if not text:
        return None
    revision, status, checked_in = text.split(" ")
    if status not in CODES:
        raise ValueError(status)
    return Acknowledged(int(revision), status, int(checked_in))
