"""The screen of tasks with the job of a task, and the actions on its page: stop it, or run its job once more."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse

from harbor_refresh.executions.access.audit import Kind, Word
from harbor_refresh.executions.admin.audit import noted
from harbor_refresh.executions.admin.confirmation import confirmed_action, redirect_to_task
from harbor_refresh.executions.admin.search import parse_id
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.task import TaskAdmin
from harbor_refresh.executions.admin.unfold_api import ModelAdmin
from harbor_refresh.executions.errors import NoSuchTask
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.admin.job_actions import errors_shown, may_act, ours
from harbor_refresh.tasks.admin.task_job import TaskJobMixin
from harbor_refresh.tasks.jobs.lifecycle.job_stops import stop_job_of
from harbor_refresh.tasks.jobs.lifecycle.retries import run_job_again
from harbor_refresh.tasks.models.job import Job


class TaskActionsMixin(ModelAdmin):
    actions_detail = ("stop_this", "retry_this")

    def has_act_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """A task is a part of its execution, so acting on it takes the permission to act on executions."""
        return may_act(request)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leave out the actions that would do nothing."""
        pk = parse_id(str(object_id)) or 0
        status = Task.objects.filter(pk=pk).values_list("status", flat=True).first()
        ended_badly = status in (Status.ERROR, Status.STOPPED)
        shown = {
            "stop": status is not None and not is_final(status),
            "retry": ended_badly and Job.objects.filter(pk=pk).exists(),
        }
        actions = ours(super().get_actions_detail(request, object_id))
        return [one for one in actions if shown.get(one.path, True)]

    @confirmed_action(
        "Stop",
        "The task becomes Stopped at once. If its job waits, the job does not begin; if its job runs, the job is "
        "asked to stop. Jobs after it in its chain are stopped as well.",
        icon="stop_circle",
        url_path="stop",
        submit="Stop",
        permission="act",
    )
    def stop_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        with errors_shown(request):
            try:
                with noted(request, Word.STOP, Kind.TASK, _task(object_id)) as entry:
                    entry.skip = not stop_job_of(int(object_id))
            except NoSuchTask:
                messages.warning(request, "Nothing was done: the task does not exist any more.")
            else:
                if entry.skip:
                    messages.warning(request, "It had ended before.")
                else:
                    messages.success(request, "It is stopped.")
        return redirect_to_task(object_id)

    @confirmed_action(
        "Run again",
        "The job of this task runs once more, and so do the jobs of its chain that were stopped because of it.",
        icon="replay",
        url_path="retry",
        submit="Run again",
        permission="act",
    )
    def retry_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        with errors_shown(request):
            try:
                with noted(request, Word.RETRY, Kind.TASK, _task(object_id)) as entry:
                    entry.count = run_job_again(int(object_id))
                    entry.skip = not entry.count
            except NoSuchTask:
                messages.warning(request, "Nothing was done: the task does not exist any more.")
            else:
                if entry.skip:
                    messages.warning(request, "Nothing runs again: it has not ended, or it waits for another job.")
                else:
                    jobs = "Its job" if entry.count == 1 else f"{entry.count:,} jobs of its chain"
                    messages.success(request, f"{jobs} will run once more.")
        return redirect_to_task(object_id)


def _task(object_id: str) -> Task:
    task = Task.objects.filter(pk=object_id).first()
    if task is None:
        raise NoSuchTask(int(object_id))
    return task


@page(Task)
class TaskWithJobAdmin(TaskActionsMixin, TaskJobMixin, TaskAdmin):
    pass
