"""The screen of tasks with the job of a task."""

from django.contrib import admin

from executions.admin.task import TaskAdmin
from executions.models import Task
from tasks.admin.task_job import TaskJobMixin

admin.site.unregister(Task)


@admin.register(Task)
class TaskWithJobAdmin(TaskJobMixin, TaskAdmin):
    pass
