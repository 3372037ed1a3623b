"""The job of a task on the page of the task: its work, and what Redis knows of it at this moment."""

from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.formatters import moment
from harbor_refresh.executions.admin.unfold_api import ModelAdmin, display
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import is_final
from harbor_refresh.tasks.admin import job_formatters
from harbor_refresh.tasks.jobs.lifecycle.kept_ends import end_of
from harbor_refresh.tasks.jobs.overview.inspection import JobInspection, inspect_job
from harbor_refresh.tasks.models.job import Job, JobEnd

OF_JOB = ("name", "attempt", "arguments", "named_arguments", "options", "published", "waits_for")
OF_END = ("result", "traceback")
OF_NOW = ("node", "runs_so_far", "heard", "delivered", "not_seen", "done")

JOB = ("Job", {"fields": (OF_JOB[:2], OF_JOB[2:4], OF_JOB[4:6], OF_JOB[6])})
NOW = ("At this moment", {"fields": (OF_NOW[:2], OF_NOW[2:4])})
NOW_WITH_BAR = ("At this moment", {"fields": (OF_NOW[5], OF_NOW[:2], OF_NOW[2:4])})
RESULT = ("Its end", {"fields": (OF_END[0],)})
TRACEBACK = ("Its end", {"fields": (OF_END[1],)})
NOTHING_SEEN = ("At this moment", {"fields": (OF_NOW[4],)})


def job_of(task: Task) -> Job | None:
    """Read the job, once for a page."""
    known: dict[str, Any] = task.__dict__
    if "its_job" not in known:
        known["its_job"] = Job.objects.select_related("task", "follows__task").filter(pk=task.pk).first()
    job: Job | None = known["its_job"]
    return job


def seen_of(task: Task) -> JobInspection | str:
    """Read what Redis knows of the job, once for a page. If it knows nothing, return the reason; empty if the
    job has ended."""
    known: dict[str, Any] = task.__dict__
    if "seen" not in known:
        nothing = "" if is_final(task.status) else "No worker has begun it."
        try:
            known["seen"] = inspect_job(task.job_id) or nothing
        except QueueUnavailable as exc:
            known["seen"] = f"Redis is away, so this is unknown. {exc}"
    seen: JobInspection | str = known["seen"]
    return seen


def kept_end_of(task: Task) -> JobEnd | None:
    """Read what is kept of the end of the job, once for a page."""
    known: dict[str, Any] = task.__dict__
    if "its_end" not in known:
        known["its_end"] = end_of(task.pk) if is_final(task.status) else None
    end: JobEnd | None = known["its_end"]
    return end


def _end_of(task: Task) -> JobEnd:
    if end := kept_end_of(task):
        return end
    raise Job.DoesNotExist


def _job(task: Task) -> Job:
    """Return the job, or raise DoesNotExist, which leaves the field empty."""
    if job := job_of(task):
        return job
    raise Job.DoesNotExist


def _seen(task: Task) -> JobInspection:
    seen = seen_of(task)
    if isinstance(seen, JobInspection):
        return seen
    raise Job.DoesNotExist


def _end(task: Task) -> list[Any]:
    end = kept_end_of(task)
    return [] if end is None else [TRACEBACK if end.traceback else RESULT]


def _now(seen: JobInspection | str) -> list[Any]:
    if isinstance(seen, JobInspection):
        has_numbers = seen.check_in is not None and seen.check_in.share is not None
        return [NOW_WITH_BAR if has_numbers else NOW]
    return [NOTHING_SEEN] if seen else []


class TaskJobMixin(ModelAdmin):
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = list(super().get_fieldsets(request, obj))
        if obj is None or job_of(obj) is None:
            return shown
        seen = seen_of(obj)
        return [shown[0], *_now(seen), *_end(obj), JOB, *shown[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *OF_JOB, *OF_NOW, *OF_END)

    @display(description="Name")
    def name(self, task: Task) -> str:
        return _job(task).name

    @display(description="Attempt")
    def attempt(self, task: Task) -> SafeString:
        return job_formatters.attempt(_job(task))

    @display(description="Arguments")
    def arguments(self, task: Task) -> SafeString | str:
        return job_formatters.pretty(_job(task).arguments)

    @display(description="Named arguments")
    def named_arguments(self, task: Task) -> SafeString | str:
        return job_formatters.pretty(_job(task).kwargs)

    @display(description="Options")
    def options(self, task: Task) -> SafeString | str:
        return job_formatters.pretty(_job(task).options)

    @display(description="Message sent")
    def published(self, task: Task) -> SafeString | str:
        return moment(_job(task).published_at)

    @display(description="Waits for")
    def waits_for(self, task: Task) -> SafeString | str:
        return job_formatters.waits_for(_job(task))

    @display(description="Runs on")
    def node(self, task: Task) -> SafeString | str:
        return job_formatters.node_label(_seen(task))

    @display(description="Runs so far")
    def runs_so_far(self, task: Task) -> int:
        return _seen(task).record.runs

    @display(description="Last heard of")
    def heard(self, task: Task) -> str:
        return job_formatters.heard(_seen(task))

    @display(description="Its last report")
    def delivered(self, task: Task) -> str:
        return "is in the database" if _seen(task).record.is_delivered else "is not in the database yet"

    @display(description="Done")
    def done(self, task: Task) -> SafeString | str:
        return job_formatters.check_in_bar(_seen(task))

    @display(description="Result")
    def result(self, task: Task) -> SafeString | str:
        end = _end_of(task)
        return f"It was not kept: {end.why_not}." if end.why_not else job_formatters.pretty_result(end.result)

    @display(description="Traceback")
    def traceback(self, task: Task) -> SafeString:
        return job_formatters.folded("Show the traceback", _end_of(task).traceback)

    @display(description="Known to Redis")
    def not_seen(self, task: Task) -> str:
        return str(seen_of(task))
