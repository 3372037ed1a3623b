"""The screen of tasks with the job of a task, and the actions on its page: stop it, or run its job once more."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from harbor_refresh.executions.access.audit import Kind, Word, noted, person_of
from harbor_refresh.executions.admin.confirmation import Question, asks_first
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.errors import NoSuchTask
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.admin.execution_actions import errors_shown, harbors, may_act, may_run_again
from harbor_refresh.tasks.admin.task_job import TaskJobAdmin
from harbor_refresh.tasks.jobs.again import run_job_again
from harbor_refresh.tasks.jobs.stops import stop_job_of
from harbor_refresh.tasks.models.job import Job


@page(Task)
class TaskWithActionsAdmin(TaskJobAdmin):
    page_actions = ("stop", "retry")

    def has_act_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """A task is a part of its execution, so acting on it takes the permission to act on executions."""
        return may_act(request)

    def pointless(self, request: HttpRequest, row: Task) -> set[str]:
        may_stop = not is_final(row.status)
        may_retry = (
            row.status in (Status.ERROR, Status.STOPPED)
            and may_run_again(request, row.execution)
            and Job.objects.filter(pk=row.pk).exists()
        )
        return harbors() | {name for name, useful in (("stop", may_stop), ("retry", may_retry)) if not useful}

    @admin.action(description="Stop", permissions=["act"])
    @asks_first(
        Question(
            "Stop {}",
            "The task becomes Stopped at once. If its job waits, the job does not begin; if its job runs, the job "
            "is asked to stop. Jobs after it in its chain are stopped as well.",
            "Stop",
        )
    )
    def stop(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request), _gone_shown(request):
            task = queryset.get()
            with noted(person_of(request), Word.STOP, Kind.TASK, task.pk) as entry:
                entry.skip = not stop_job_of(task.pk)
            if entry.skip:
                messages.warning(request, "It had ended before.")
            else:
                messages.success(request, "It is stopped.")

    @admin.action(description="Run again", permissions=["act"])
    @asks_first(
        Question(
            "Run {} again",
            "The job of this task runs once more, and so do the jobs of its chain that were stopped with it.",
            "Run again",
        )
    )
    def retry(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        with errors_shown(request), _gone_shown(request):
            task = queryset.select_related("execution").get()
            if not may_run_again(request, task.execution):
                messages.error(request, "Nothing was done: you may not delete executions.")
                return
            with noted(person_of(request), Word.RETRY, Kind.TASK, task.pk) as entry:
                entry.count = run_job_again(task.pk)
                entry.skip = not entry.count
            if entry.skip:
                messages.warning(request, "Nothing runs again: it has not ended, or it waits for another job.")
            else:
                jobs = "Its job" if entry.count == 1 else f"{entry.count:,} jobs of its chain"
                messages.success(request, f"{jobs} will run once more.")


@contextmanager
def _gone_shown(request: HttpRequest) -> Iterator[None]:
    try:
        yield
    except (NoSuchTask, Task.DoesNotExist):
        messages.warning(request, "Nothing was done: the task does not exist any more.")
