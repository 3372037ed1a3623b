"""The screens of jobs, limits and queue, and what they add to those of executions and tasks."""

from harbor_refresh.tasks.admin import execution, job, queue_page, task

__all__ = ["execution", "job", "queue_page", "task"]
