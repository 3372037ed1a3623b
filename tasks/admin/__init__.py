"""The screens of jobs, limits, queue and quarantine, and what they add to those of executions and tasks."""

from harbor_refresh.tasks.admin import execution, job, queue, task

__all__ = ["execution", "job", "queue", "task"]
