"""Reports that name a job, as Harbor's job service sends them: read from the body of a request, checked, and
applied to the task of the job.

    {"job_id": "…", "status": "Running", "check_in": "…", "metadata": {"id": "…", "revision": 1731492000,
     "upstream_job_id": "…", …}, "status_message": "…"}

`metadata` has more fields there (name, kind, cron_spec …), which are not read. `status_message` is our addition.
A firing of a periodic job has a separate job id and names the periodic job as its upstream job.

A check-in is what a running job has to say. It changes no task.
"""

from contextlib import suppress
from typing import Annotated, Any

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from harbor_refresh.executions.api.schemas import MAX_MESSAGE, NO_NUL
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import NoTaskYet, Refused, TaskDeleted
from harbor_refresh.executions.lifecycle.creation import MAX_JOB_ID, NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import is_deleted
from harbor_refresh.executions.lifecycle.reports import after_commit
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import CODES, MAX_ID, MAX_REVISION, MAX_VENDOR
from harbor_refresh.executions.text import is_text, is_whole, shown

#: No task has this id: the job alone finds the task.
NO_TASK = 0
#: Harbor's word for what a schedule has started.
TRIGGER = "SCHEDULE"
#: In bytes. A status change of Harbor takes about 500, and a check-in carries what a job has to say.
MAX_BODY = 1_000_000

Text = Annotated[str, StringConstraints(pattern=NO_NUL)]
JobId = Annotated[Text, StringConstraints(max_length=MAX_JOB_ID)]
Revision = Annotated[int, Field(ge=0, le=MAX_REVISION)]


class WithoutNulls(BaseModel):
    """What is null is left out, as Go's decoder does."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given


class Metadata(WithoutNulls):
    """`upstream_job_id` is the periodic job of which this job is a firing."""

    revision: Revision = 0
    upstream_job_id: JobId = ""


class HookReport(WithoutNulls):
    """`check_in` is empty unless the job has something to say, and then its status does not count. Go's encoder
    leaves out a field with its default."""

    job_id: JobId = ""
    status: Text = ""
    metadata: Metadata | None = None
    status_message: Text | None = None
    check_in: Text = ""

    @property
    def run(self) -> Metadata:
        return self.metadata or Metadata()

    @property
    def is_firing(self) -> bool:
        return self.run.upstream_job_id not in ("", self.job_id)


def read(body: bytes) -> HookReport:
    """Read a report. Raises RequestDataTooBig, or Refused with the reason if it cannot be used."""
    if len(body) > MAX_BODY:
        raise RequestDataTooBig(f"a body takes at most {MAX_BODY:,} bytes")
    try:
        report = HookReport.model_validate_json(body)
    except ValidationError as exc:
        wrong = exc.errors()[0]
        where = ".".join(map(str, wrong["loc"])) or "the body"
        raise Refused(f"{where}: {wrong['msg']}") from None
    if not report.check_in and report.status not in CODES:
        raise Refused(f"unknown status {shown(report.status)}; takes {', '.join(CODES)}")
    return report


def report_by_job(report: HookReport, task_id: int = NO_TASK) -> None:
    """Apply the report to the task of its job. Raises NoTaskYet or TaskDeleted.

    The job id finds the task. If no task has it, the id in the address does, unless that task belongs to another
    job: so a report that comes before the job id of its task is stored is not lost.

    It is one statement, so it needs no transaction of its own. After the commit the execution is marked and, after
    a stop, refreshed. If the process dies after the statement, the sender tries again, which changes nothing, and
    reconcile finds the execution.
    """
    found = run(
        "report_by_job",
        job_id=report.job_id,
        task_id=task_id,
        status=report.status,
        code=CODES[report.status],
        revision=report.run.revision,
        message=report.status_message and report.status_message[:MAX_MESSAGE],
    )
    if not found:
        raise missing(report, task_id)
    _, execution_id, vendor_type = found[0]
    if execution_id is not None:  # it has changed the task
        after_commit([(execution_id, vendor_type)], [execution_id] if report.status == "Stopped" else [])


def missing(report: HookReport, task_id: int) -> NoTaskYet | TaskDeleted:
    """Return why there is no task: it was deleted, or it may still be created."""
    task = f"task of job {report.job_id}" if report.job_id else f"task {task_id}"
    if is_deleted(task_id, [report.job_id, report.run.upstream_job_id]):
        return TaskDeleted(f"the {task} was deleted")
    return NoTaskYet(f"there is no {task}")


def report_firing(report: HookReport, task_id: int) -> None:
    """Take what a firing reports: create its execution if this is the first report, and apply the report to its
    task and to the task of the schedule, which shows the latest firing, as in Harbor.

    1. Lock the task of the schedule. So if several reports of a firing come at once, it is created once: the
       second report waits, and then finds the task that the first has created.
    2. Create the execution of the firing, for the vendor of the schedule, with one task.
    3. Apply the report to both tasks, the older first, as all lock rows in the order of ids. A check-in creates
       the execution, too, and changes no status.

    A firing that a person has deleted is not created again. If the schedule was deleted, the firings that it has
    created still get their reports.
    """
    with transaction.atomic():
        of_upstream = Task.objects.select_for_update(no_key=True).filter(job_id=report.run.upstream_job_id)
        schedule = of_upstream.order_by("pk").first()
        if schedule and not _exists(report.job_id):
            _create(report, schedule.execution)
        if report.check_in:
            return
        if schedule is None:
            report_by_job(report, task_id)
            return
        report_by_job(report.model_copy(update={"job_id": report.run.upstream_job_id}))
        with suppress(NoTaskYet, TaskDeleted):  # a person has deleted the firing
            report_by_job(report)


def _exists(job_id: str) -> bool:
    """Whether the firing was created, even if it was deleted since."""
    return not job_id or Task.objects.filter(job_id=job_id).exists() or is_deleted(NO_TASK, [job_id])


def _create(report: HookReport, schedule: Execution) -> None:
    attributes = dict(schedule.extra_attrs) if isinstance(schedule.extra_attrs, dict) else {}
    create(
        NewExecution(
            *_vendor(schedule, attributes),
            trigger=TRIGGER,
            extra_attrs=attributes,
            tasks=[NewTask(report.job_id, {"upstream_job_id": report.run.upstream_job_id})],
        )
    )


def _vendor(schedule: Execution, attributes: dict[str, Any]) -> tuple[str, int | str]:
    """Return the vendor for which the schedule fires: the one that its attributes name, or its own. An execution
    of Harbor's scheduler is of the vendor type SCHEDULER, and only its attributes can say what it is for."""
    vendor_type: Any = attributes.get("vendor_type")
    vendor_id: Any = attributes.get("vendor_id", 0)
    is_named = is_text(vendor_type, MAX_VENDOR, at_least=1) and ":" not in vendor_type
    if is_named and is_whole(vendor_id, 0, MAX_ID):
        return vendor_type, vendor_id
    return schedule.vendor_type, schedule.vendor_key
