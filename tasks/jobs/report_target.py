"""The report target: reports of jobs are posted to REFRESH_REPORT_URL, for workers that must not write tasks.

Speaks the protocol of Harbor's job service and its core: `POST {url}{task id}` with a status change as JSON. A
report is noted in the row of its job, in the transaction of the change, and stays there until the target has taken
it. So the process of the run posts it at once; after some seconds, any worker does so.
"""

import json
import logging
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from django.db import DatabaseError, transaction
from django.db.models import Max, Min, QuerySet
from django.dispatch import Signal

from harbor_refresh.executions.conf.declarations import value
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.lifecycle.lease import Lease
from harbor_refresh.executions.lifecycle.reports import Report, Source
from harbor_refresh.executions.lifecycle.reports import report as report_tasks
from harbor_refresh.executions.status import CODES, is_final
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.conf import DECLARED, pacing, refresh_settings
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.pipeline.per_process import BatchThread, PerProcess

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger("harbor_refresh")

#: The turn of jobs of these `queues` has come, because the target has taken the end of the job before them.
reports_taken = Signal()

#: One call takes at most this long, for any number of reports.
SECONDS = 10.0
#: Refusals that may pass, because they concern the target or our settings. Any other 4xx is a refusal for good;
#: 404 is one after PATIENCE seconds, because the target may not have committed the row of the task yet.
MAY_PASS = frozenset({401, 403, 408, 425, 429})
NOT_FOUND, PATIENCE = 404, 300.0
#: The most characters of a redirect's location in an error.
MAX_LOCATION = 300
#: Reports that are fired again in one pass, and their least age in seconds.
PAGE, LATE_SECONDS = 500, 10.0


def is_set() -> bool:
    return bool(value(DECLARED["report_url"]))  # alone, because each run asks


def first_revision() -> int:
    """Return the revision in which a job that is recorded now waits for its first run.

    Without a report target, revisions count the runs: 0, 1, 2 … With a target they are unix seconds, as Harbor's
    are: the second in which the job was recorded, or its next run decided. If the clock stands still or goes back,
    a run has the revision before plus one. It is decided once, when the job begins to wait for that run, and
    stored with the job, so each repeat of a report has the same. Reports are compared by revision, so a job that
    was recorded before a target was set, or that continues after it was removed, only has higher numbers."""
    return int(time.time()) if is_set() else 0


def next_revision(revision: int) -> int:
    """Return the revision of the run after this one."""
    return max(revision + 1, first_revision())


@dataclass(frozen=True)
class NotedReport:
    """The report that is noted in the row of its job. `since` is when it was first reported, in unix seconds."""

    task_id: int
    job: str
    status: str
    revision: int
    message: str
    since: float

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the report that the row of this job has."""
        parts: Any = job.report
        return cls(job.pk, job.task.job_id, **parts)

    @property
    def text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in ("status", "revision", "message", "since")})

    @property
    def body(self) -> dict[str, Any]:
        """The body that Harbor's core reads; `status_message` is an addition that other readers may ignore."""
        metadata = {"id": self.job, "status": self.status, "revision": self.revision}
        body = {"job_id": self.job, "status": self.status, "metadata": metadata}
        return body | ({"status_message": self.message} if self.message else {})


def note(reports: Sequence[Report]) -> None:
    """Note these reports, and post them after the commit. A run that has ended ends its job here, because its task
    ends only when the target says so."""
    now = time.time()
    noted = [NotedReport(one.task_id, "", one.status, one.revision, one.message or "", now) for one in reports]
    rows = run(
        "note_reports",
        task_ids=[one.task_id for one in noted],
        reports=[one.text for one in noted],
        are_final=[is_final(one.status) for one in noted],
    )
    with_jobs = [NotedReport(task_id, job, **json.loads(text)) for task_id, job, text in rows]
    transaction.on_commit(lambda: poster.get().put(with_jobs))


def fire_again() -> int:
    """Fire again reports that were not taken, unless their task says by now that they were. Returns how many the
    target has taken. They begin at a random one, so that no report that is refused holds up the others. If no
    target is set any more, apply them here. One process at a time does so, or a slow target would take them all.
    """
    noted = Job.objects.filter(report__isnull=False).select_related("task").order_by("pk")
    with absence_translated():
        first, last = noted.aggregate(Min("pk"), Max("pk")).values()
        if first is None:
            return 0
        with Lease("reports").taken() as other:
            return 0 if other else _fire(noted, random.randint(first, last))  # noqa: S311  # no secret


def _fire(noted: QuerySet[Job], begin: int) -> int:
    with absence_translated(), transaction.atomic():
        if not is_set():
            reports = [NotedReport.of(one) for one in noted[:PAGE]]
            _apply(reports)
            _forget(reports)
            return len(reports)
        late = noted.filter(report__since__lt=time.time() - LATE_SECONDS)
        page = [*late.filter(pk__gte=begin)[:PAGE], *late.filter(pk__lt=begin)[:PAGE]][:PAGE]
        taken, left = list[NotedReport](), list[NotedReport]()
        for job in page:
            one, has = NotedReport.of(job), (job.task.status_revision, job.task.status_code)
            # its task may have it by now, or a later one: the answer was lost, or another program has reported
            (taken if has >= (one.revision, CODES[one.status]) else left).append(one)
        _forget(taken)
    return settle(left).taken


def _apply(reports: Sequence[NotedReport]) -> None:
    """Write them to the tasks here."""
    ours = [Report(one.task_id, one.status, one.revision, one.message or None) for one in reports]
    report_tasks(ours, Source.JOB)


def _forget(reports: Sequence[NotedReport]) -> None:
    if reports:
        run("reports_taken", task_ids=[one.task_id for one in reports], reports=[one.text for one in reports])


class Settled(NamedTuple):
    """How many reports the target has taken, how many are left, and the last reason for that."""

    taken: int
    left: int
    why_left: str


def settle(reports: Sequence[NotedReport]) -> Settled:
    """Post these reports in this order, one request for each. Forget those that are settled, and have the jobs
    sent whose turn has come with them.

    1. An answer of 2xx: the target has taken the report.
    2. A refusal for good, for example because its task is gone: the report is given up. So is a report that has
       been answered by 404 for PATIENCE seconds.
    3. A refusal that may pass: the report is left, and the next one is tried, because only this one may be
       concerned. A redirect is such a refusal: it means that our setting is wrong, and is not followed.
    4. No answer: the target is down, so this report and all following ones are left.
    """
    taken: list[NotedReport] = []
    given_up: list[NotedReport] = []
    why_left = ""
    until, url = time.monotonic() + SECONDS, refresh_settings().report_url
    for report in reports:
        if time.monotonic() > until:
            why_left = "it answers too slowly"
            break
        try:
            answer = client().post(f"{url}{report.task_id}", json=report.body)
        except Exception as exc:  # any error of the client
            why_left = f"{type(exc).__name__}: {exc}"
            break
        code = answer.status_code
        may_pass = code in MAY_PASS or (code == NOT_FOUND and time.time() - report.since < PATIENCE)
        if answer.is_success:
            taken.append(report)
        elif not answer.is_client_error or may_pass:
            why_left = f"it answered {code}"
            if 300 <= code < 400:
                location = answer.headers.get("Location", "")[:MAX_LOCATION]
                why_left += f", a redirect to {location!r}, which is not followed: change REFRESH_REPORT_URL"
        elif _is_given_up(report, code):
            given_up.append(report)
    done = [*taken, *given_up]
    with absence_translated():
        _forget(done)
        ended = [one.task_id for one in done if is_final(one.status)]
        behind = Job.objects.filter(needs__needed__in=ended, state=JobState.WAITING, waits_for=0)
        if queues := set(behind.values_list("queue", flat=True)):
            reports_taken.send(sender=settle, queues=queues)
    return Settled(len(taken), len(reports) - len(done), why_left)


def _is_given_up(report: NotedReport, code: int) -> bool:
    """Give up a report that the target refuses for good. An end is written here, because no other program will
    say that the job has ended. False if the database refuses that: then it is posted again."""
    log.warning(
        "The hook does not want the report that job %s is %s: the hook answered %s",
        report.job,
        report.status,
        code,
    )
    if is_final(report.status):
        try:
            _apply([report])
        except DatabaseError as exc:
            log.error("The end of task %d cannot be written: %s", report.task_id, said_by(exc))
            return False
    return True


def _post(reports: Sequence[NotedReport]) -> str:
    """Post these, and say why some are left: they are fired again (`fire_again`)."""
    try:
        _, left, why = settle(reports)
    except Exception as exc:  # the database is down
        left, why = len(reports), said_by(exc)
    return f"{left} turns of jobs cannot be reported, trying again: {why}" if why else ""


#: One thread in each process that posts the reports of its jobs.
poster = PerProcess(lambda: BatchThread("poster", _post))


@cache
def client() -> "httpx2.Client":
    """Return the client of this process. It connects on first use."""
    import httpx2  # the extra `http`, which a project without a report target does not need

    conf = refresh_settings()
    headers = {"Authorization": conf.report_authorization} if conf.report_authorization else {}
    return httpx2.Client(timeout=pacing.REPORT_TIMEOUT_SECONDS, headers=headers, follow_redirects=False)


os.register_at_fork(after_in_child=client.cache_clear)
