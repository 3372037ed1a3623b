"""The record of a job in progress: one line of text in Redis.

`REVISION|STATUS|RUNS|CHECKED_IN|RENEWED|NODE|TASK|ACKNOWLEDGED|SENT|ASKED|MESSAGE`

| part           | is                                                                                     |
| -------------- | -------------------------------------------------------------------------------------- |
| `REVISION`     | the run, as in reports                                                                 |
| `STATUS`       | the status of that run                                                                 |
| `RUNS`         | how often the job has begun                                                            |
| `CHECKED_IN`   | its last check-in, in microseconds of Redis's clock; in the future if it runs later    |
| `RENEWED`      | when its process last renewed its lease                                                |
| `NODE`         | the node that runs it; empty while it waits                                            |
| `TASK`         | the row its reports are for                                                            |
| `ACKNOWLEDGED` | `REVISION STATUS CHECKED_IN` of the last report in the database; empty if none         |
| `SENT`         | 0 if it waits and its message must be published again                                  |
| `ASKED`        | 1 if it was asked to stop                                                              |
| `MESSAGE`      | its last message, which becomes the status message of the task; see attachments.py     |
"""

from dataclasses import dataclass, replace
from typing import Self

from harbor_refresh.executions.status import CODES, MAX_ID, MAX_REVISION, is_final

MAX_MESSAGE = 2_000
#: The node of a run that the database knows of and Redis does not. If a process has this run, it replaces the
#: record.
UNKNOWN = "unknown"


@dataclass(frozen=True, order=True)
class ReportRank:
    """How far a job is, compared by revision, then status code, then check-in."""

    revision: int
    code: int
    checked_in: int


@dataclass(frozen=True)
class Acknowledged:
    revision: int
    status: str
    checked_in: int

    @property
    def rank(self) -> ReportRank:
        return ReportRank(self.revision, CODES[self.status], self.checked_in)


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
        """Parse a record; None if it is unreadable, which means another program wrote it."""
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
        last = self.acknowledged
        acknowledged = f"{last.revision} {last.status} {last.checked_in}" if last else ""
        return (
            f"{self.revision}|{self.status}|{self.runs}|{self.checked_in}|{self.renewed}|{self.node}|{self.task_id}"
            f"|{acknowledged}|{int(self.sent)}|{int(self.asked)}|{self.message}"
        )

    @property
    def rank(self) -> ReportRank:
        return ReportRank(self.revision, CODES[self.status], self.checked_in)

    @property
    def is_delivered(self) -> bool:
        """Whether the report of this status in this revision is acknowledged. A later check-in is not reported."""
        last = self.acknowledged
        return last is not None and (last.revision, last.status) == (self.revision, self.status)

    @property
    def is_final(self) -> bool:
        return is_final(self.status)

    @property
    def is_running(self) -> bool:
        return bool(self.node) and not self.is_final

    @property
    def is_waiting(self) -> bool:
        return not self.is_running and not self.is_final

    def released(self, now: int, revision: int, status: str = "Pending") -> Self:
        """Return the record after its run was released: it waits in this revision, and has no message yet."""
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
