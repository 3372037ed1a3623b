"""Reports of jobs: a change of a job's status, with the data that its task and the jobs that follow it need."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from harbor_refresh.executions.lifecycle.reports import Report
from harbor_refresh.executions.status import CODES, MAX_EARLIER_RUNS, Status, is_final
from harbor_refresh.tasks.jobs.records.arguments import Arguments, Request
from harbor_refresh.tasks.jobs.records.attachments import contents_of
from harbor_refresh.tasks.jobs.records.kept import Kept
from harbor_refresh.tasks.jobs.records.record import JobRecord
from harbor_refresh.tasks.jobs.records.run import Run


@dataclass(frozen=True)
class JobReport:
    """A job has this status in this revision. `result` is for the next job of its chain, if that takes it.
    `is_followed` is False only if certainly no job follows. For `earlier_runs` see Report, for `kept` kept.py."""

    job: str
    task_id: int
    revision: int
    status: str
    message: str = ""
    result: Any = None
    is_followed: bool = True
    #: The arguments that the job asked for, if the database may have older ones.
    arguments: Arguments | None = None
    earlier_runs: int = 0
    kept: Kept | None = None
    #: How many retries of Celery's led to the run of this revision; 0 if that is not known.
    retries: int = 0

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        contents = contents_of(record)
        return cls(
            record.job,
            record.task_id,
            record.revision,
            record.status,
            contents.message,
            contents.result,
            earlier_runs=_earlier_runs(record.status, record.runs),
            kept=contents.kept,
            retries=contents.retries,
        )

    @classmethod
    def of_run(
        cls,
        run: Run,
        status: str,
        revision: int | None = None,
        message: str = "",
        *,
        result: Any = None,
        is_followed: bool = True,
        arguments: Arguments | None = None,
        kept: Kept | None = None,
        retries: int = 0,
    ) -> Self:
        """Return the report of a run, in its own revision if no other is given."""
        return cls(
            run.job,
            run.task_id,
            run.revision if revision is None else revision,
            status,
            message,
            result,
            is_followed,
            arguments,
            _earlier_runs(status, run.runs),
            kept,
            retries,
        )

    @property
    def request(self) -> Request | None:
        return Request(self.job, self.task_id, self.arguments) if self.arguments else None

    @property
    def is_followed_success(self) -> bool:
        return self.is_followed and self.status == Status.SUCCESS

    @property
    def breaks_chain(self) -> bool:
        return self.is_followed and is_final(self.status) and self.status != Status.SUCCESS

    @property
    def task_report(self) -> Report:
        """Return the report that `executions` takes."""
        return Report(
            self.task_id,
            self.status,
            self.revision,
            self.message or None,
            min(self.earlier_runs, MAX_EARLIER_RUNS),
        )


def _earlier_runs(status: str, runs: int) -> int:
    """Return the number of runs before the run of this revision. That run has begun unless the job waits."""
    waits = CODES[status] < CODES[Status.RUNNING]
    return runs if waits else max(0, runs - 1)


def shuffled(reports: Iterable[JobReport]) -> list[JobReport]:
    """Return the reports in random order, so that a slow or silent hook gets different ones each time."""
    reports = list(reports)
    random.shuffle(reports)
    return reports


def end_of_each_run(reports: Sequence[JobReport]) -> list[JobReport]:
    """Leave out the start of a run whose end is among the reports, because the end implies the start. The
    arguments and the retries of the run go with its end."""
    furthest: dict[tuple[str, int], JobReport] = {}
    for report in reports:
        known = furthest.setdefault((report.job, report.revision), report)
        if CODES[report.status] > CODES[known.status]:
            arguments = report.arguments or known.arguments
            furthest[report.job, report.revision] = replace(
                report, arguments=arguments, retries=max(report.retries, known.retries)
            )
    return list(furthest.values())
