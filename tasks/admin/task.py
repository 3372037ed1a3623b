"""The screen of tasks with the job of a task, and what can be done with one."""

from executions.admin.site_pages import page
from executions.admin.task import TaskAdmin
from executions.models import Task
from tasks.admin.task_actions import TaskActionsMixin
from tasks.admin.task_job import TaskJobMixin


@page(Task)
class TaskWithJobAdmin(TaskActionsMixin, TaskJobMixin, TaskAdmin):
    pass
