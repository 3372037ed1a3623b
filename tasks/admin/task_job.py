"""The job of a task on the page of the task: its work, and what it does at this moment."""

from typing import Any

from django.db.models import Count
from django.http import HttpRequest

from harbor_refresh.executions.admin.formatters import column, moment
from harbor_refresh.executions.admin.task import TaskAdmin
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import is_final
from harbor_refresh.tasks.admin import job_formatters
from harbor_refresh.tasks.admin.job_formatters import pretty
from harbor_refresh.tasks.jobs.queries import check_in_of, why
from harbor_refresh.tasks.jobs.running.handle import CheckIn
from harbor_refresh.tasks.jobs.running.kept_ends import end_of
from harbor_refresh.tasks.models.job import Job, JobEnd, State

OF_JOB = ("name", "attempt", "arguments", "named_arguments", "options", "published", "needed")
OF_END = ("result", "traceback")
OF_NOW = ("node", "runs_so_far", "heard", "why", "done")

JOB = ("Job", {"fields": (OF_JOB[:2], OF_JOB[2:4], OF_JOB[4:6], OF_JOB[6])})
NOW = ("At this moment", {"fields": (OF_NOW[:2], OF_NOW[2])})
NOW_WITH_BAR = ("At this moment", {"fields": (OF_NOW[4], OF_NOW[:2], OF_NOW[2])})
RESULT = ("Its end", {"fields": (OF_END[0],)})
TRACEBACK = ("Its end", {"fields": (OF_END[1],)})
WAITS = ("At this moment", {"fields": (OF_NOW[3],)})


def job_of(task: Task) -> Job | None:
    """Read the job, once for a page."""
    known: dict[str, Any] = task.__dict__
    if "its_job" not in known:
        jobs = Job.objects.select_related("task").annotate(need_count=Count("needs"))
        known["its_job"] = jobs.filter(pk=task.pk).first()
    job: Job | None = known["its_job"]
    return job


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


def _end(task: Task) -> list[Any]:
    end = kept_end_of(task)
    return [] if end is None else [TRACEBACK if end.traceback else RESULT]


def _now(job: Job) -> list[Any]:
    if job.state == State.RUNNING:
        has_numbers = (check_in_of(job) or CheckIn()).share is not None
        return [NOW_WITH_BAR if has_numbers else NOW]
    return [] if job.state == State.ENDED else [WAITS]


class TaskJobAdmin(TaskAdmin):
    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = list(super().get_fieldsets(request, obj))
        if obj is None or (job := job_of(obj)) is None:
            return shown
        return [shown[0], *_now(job), *_end(obj), JOB, *shown[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *OF_JOB, *OF_NOW, *OF_END)

    name = column(_job, "Name", lambda job: job.name)
    attempt = column(_job, "Attempt", job_formatters.attempt)
    arguments = column(_job, "Arguments", lambda job: pretty(job.args))
    named_arguments = column(_job, "Named arguments", lambda job: pretty(job.kwargs))
    options = column(_job, "Options", lambda job: pretty(job.options))
    published = column(_job, "Message sent", lambda job: moment(job.sent_at))
    needed = column(_job, "Needs", job_formatters.needed)
    node = column(_job, "Runs on", job_formatters.node_label)
    runs_so_far = column(_job, "Runs so far", lambda job: job.run)
    heard = column(_job, "Last heard of", job_formatters.heard)
    why = column(_job, "Why it does not run", why)
    done = column(_job, "Done", job_formatters.check_in_bar)
    result = column(_end_of, "Result", job_formatters.result)
    traceback = column(
        _end_of, "Traceback", lambda end: job_formatters.folded("Show the traceback", end.traceback)
    )
