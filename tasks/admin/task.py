"""The screen of tasks with the job of a task, and what can be done with one."""

from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.admin.task import TaskAdmin
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.admin.task_actions import TaskActionsMixin
from harbor_refresh.tasks.admin.task_job import TaskJobMixin


@page(Task)
class TaskWithJobAdmin(TaskActionsMixin, TaskJobMixin, TaskAdmin):
    pass
