"""A turn of a job: a change of its status, which becomes a report."""

import json
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from executions.reports import Report
from executions.status import CODES, MAX_EARLIER_RUNS, Status, is_final
from tasks.jobs.records.record import JobRecord

#: The result for the next job of a chain is the last message of the record: this prefix, and JSON.
RESULT = "result: "
#: So are changed arguments of another try, together with the message: this prefix, and JSON of the three.
AGAIN = "again: "

Arguments = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True)
class Turn:
    """A job has this status in this revision. `result` is for the job that follows it, if one wants it;
    `is_followed` is False only if it is known that none does; `earlier_runs`, see Report."""

    job: str
    task_id: int
    revision: int
    status: str
    message: str = ""
    result: Any = None
    is_followed: bool = True
    #: The arguments of another try, if they differ from those of the try before it.
    arguments: Arguments | None = None
    earlier_runs: int = 0

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        message, result, arguments = record.message, None, None
        with suppress(ValueError, TypeError, RecursionError):  # not written by us; its status counts still
            if message.startswith(RESULT) and record.status == Status.SUCCESS:
                result, message = json.loads(message.removeprefix(RESULT)), ""
            elif message.startswith(AGAIN) and record.status in (Status.SCHEDULED, Status.STOPPED):
                args, kwargs, message = json.loads(message.removeprefix(AGAIN))
                arguments = (args, kwargs) if record.status == Status.SCHEDULED else None
        return cls(
            record.job,
            record.task_id,
            record.revision,
            record.status,
            message,
            result,
            arguments=arguments,
            earlier_runs=record.earlier_runs,
        )

    @property
    def is_final(self) -> bool:
        return is_final(self.status)

    @property
    def report(self) -> Report:
        return Report(
            self.task_id,
            self.status,
            self.revision,
            self.message or None,
            min(self.earlier_runs, MAX_EARLIER_RUNS),
        )


def shuffled(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns in random order, so that a slow or silent hook is asked about different ones each time."""
    turns = list(turns)
    random.shuffle(turns)
    return turns


def end_of_each_run(turns: Sequence[Turn]) -> list[Turn]:
    """Report only the end of a run, because it implies the start. The arguments of the run go with it."""
    furthest: dict[tuple[str, int], Turn] = {}
    for turn in turns:
        known = furthest.setdefault((turn.job, turn.revision), turn)
        if CODES[turn.status] > CODES[known.status]:
            arguments = turn.arguments or known.arguments
            furthest[turn.job, turn.revision] = replace(turn, arguments=arguments)
    return list(furthest.values())
