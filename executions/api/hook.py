"""The hook: `POST /service/notifications/tasks/ID` takes reports that name a job, as Harbor's job service sends
them.

    {"job_id": "…", "status": "Running", "check_in": "…", "metadata": {"id": "…", "revision": 1731492000,
     "upstream_job_id": "…", …}, "status_message": "…"}

`metadata` has more fields there (name, kind, cron_spec …), which are not read. `status_message` is our addition.
A firing of a periodic job has a separate job id and names the periodic job as its upstream job. A check-in is what
a running job has to say. It changes no task.

A plain view and no operation of the API, because most requests of a busy system come here, and because Harbor's
job service takes only 200 for success. Harbor's own secret may report, or an API token with the scope `report`.
"""

from contextlib import suppress
from typing import Annotated, Any

from django.core.exceptions import RequestDataTooBig
from django.db import Error, transaction
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from harbor_refresh.executions.api.access import Scope, may
from harbor_refresh.executions.api.problems import Problem, answer, unauthorized
from harbor_refresh.executions.api.schemas import MAX_MESSAGE, NO_NUL
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.conf import intake_settings
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import DatabaseDown, NoTaskYet, OwnedByHarbor, Refused, TaskDeleted
from harbor_refresh.executions.lifecycle.creation import MAX_JOB_ID, NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import is_deleted
from harbor_refresh.executions.lifecycle.reports import Refusal, Report, Source, after_commit, count_refused
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.status import CODES, MAX_ID, MAX_REVISION
from harbor_refresh.executions.text import shown

SCHEME = "Harbor-Secret"
TAKES = f"takes `Authorization: {SCHEME} SECRET` or `Authorization: Bearer TOKEN`"
#: No task has this id: the job alone finds the task.
NO_TASK = 0
#: Harbor's word for what a schedule has started.
TRIGGER = "SCHEDULE"
#: In bytes. A status change of Harbor takes about 500, and a check-in carries what a job has to say.
MAX_BODY = 1_000_000

Text = Annotated[str, StringConstraints(pattern=NO_NUL)]
JobId = Annotated[Text, StringConstraints(max_length=MAX_JOB_ID)]


class WithoutNulls(BaseModel):
    """What is null is left out, as Go's decoder does."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given


class Metadata(WithoutNulls):
    """`upstream_job_id` is the periodic job of which this job is a firing."""

    revision: int = Field(default=0, ge=0, le=MAX_REVISION)
    upstream_job_id: JobId = ""


class HookReport(WithoutNulls):
    """`check_in` is empty unless the job has something to say, and then its status does not count. Go's encoder
    leaves out a field with its default."""

    job_id: JobId = ""
    status: Text = ""
    metadata: Metadata = Metadata()
    status_message: Text | None = None
    check_in: Text = ""

    @property
    def is_firing(self) -> bool:
        return self.metadata.upstream_job_id not in ("", self.job_id)


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


def may_report(request: HttpRequest) -> None:
    """Raise Problem if the caller may not report. The hook is never open: without a secret and tokens every
    request is refused."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme == SCHEME:
        secret = intake_settings().harbor_secret
        if not secret or not constant_time_compare(credentials, secret):
            raise unauthorized("the secret is wrong, or none is set here")
    elif not may[Scope.REPORT](request):
        raise unauthorized(f"no valid authorization was sent; {TAKES}")


@csrf_exempt
def status_hook(request: HttpRequest, task_id: str = "0") -> HttpResponse:
    """Take a report. An answer of 200 is empty, and means that it is in the database, or was there already.

    1. Refuse callers that may not report, then what is too large or cannot be read.
    2. Apply it. A check-in changes no task.
    """
    try:
        if request.method != "POST":
            raise Problem(405, "Not allowed", "takes POST", {"Allow": "POST"})
        may_report(request)
        _take(read(request.body), _id(task_id))
    except (Problem, Error, DatabaseDown, RequestDataTooBig) as exc:
        return answer(request, exc)
    except (TaskDeleted, NoTaskYet, OwnedByHarbor) as exc:
        count_refused(Source.HOOK, 1)
        return answer(request, exc)
    except (Refused, UnreadablePostError) as exc:  # the second: the sender has closed the connection
        count_refused(Source.HOOK, 1)
        signals.refused.send(sender=status_hook, refusals=[Refusal(0, Report(0, ""), str(exc))])
        return answer(request, Refused(str(exc)))
    return HttpResponse()


def _take(report: HookReport, task_id: int) -> None:
    refuse_if_attached(Operation.REPORT)
    if report.is_firing:
        report_firing(report, task_id)
    elif not report.check_in:
        report_by_job(report, task_id)


def _id(text: str) -> int:
    """Read the id in the address. An id that no task can have finds none, and the job id may find the task."""
    if not (text.isascii() and text.isdecimal()):
        raise Refused("the address takes the id of a task, a whole number")
    return int(text) if len(text) < 20 and int(text) <= MAX_ID else NO_TASK


def report_by_job(report: HookReport, task_id: int = NO_TASK) -> None:
    """Apply the report to the task of its job. Raises NoTaskYet or TaskDeleted.

    The job id finds the task. If no task has it, the id in the address does, unless that task belongs to another
    job: so a report that comes before the job id of its task is stored is not lost.

    It is one statement, so it needs no transaction. After the commit the execution is marked and, after
    a stop, refreshed. If the process dies after the statement, the sender tries again, which changes nothing, and
    reconcile finds the execution.
    """
    found = run(
        "report_by_job",
        job_id=report.job_id,
        task_id=task_id,
        status=report.status,
        code=CODES[report.status],
        revision=report.metadata.revision,
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
    if is_deleted(task_id, [report.job_id, report.metadata.upstream_job_id]):
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
        of_upstream = Task.objects.select_for_update(no_key=True).filter(job_id=report.metadata.upstream_job_id)
        schedule = of_upstream.order_by("pk").first()
        if schedule and not _exists(report.job_id):
            _create(report, schedule.execution)
        if report.check_in:
            return
        if schedule is None:
            report_by_job(report, task_id)
            return
        report_by_job(report.model_copy(update={"job_id": report.metadata.upstream_job_id}))
        with suppress(NoTaskYet, TaskDeleted):  # a person has deleted the firing
            report_by_job(report)


def _exists(job_id: str) -> bool:
    """Whether the firing was created, even if it was deleted since."""
    return not job_id or Task.objects.filter(job_id=job_id).exists() or is_deleted(NO_TASK, [job_id])


def _create(report: HookReport, schedule: Execution) -> None:
    create(
        NewExecution(
            schedule.vendor_type,
            schedule.vendor_key,
            trigger=TRIGGER,
            extra_attrs=schedule.extra_attrs if isinstance(schedule.extra_attrs, dict) else {},
            tasks=[NewTask(report.job_id, {"upstream_job_id": report.metadata.upstream_job_id})],
        )
    )
