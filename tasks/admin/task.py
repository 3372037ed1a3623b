"""The screen of tasks with the job of a task, and what can be done with one."""

from django.contrib import admin

from executions.admin.task import TaskAdmin
from executions.models import Task
from tasks.admin.task_actions import TaskActionsMixin
from tasks.admin.task_job import TaskJobMixin

admin.site.unregister(Task)


@admin.register(Task)
class TaskWithJobAdmin(TaskActionsMixin, TaskJobMixin, TaskAdmin):
    pass
