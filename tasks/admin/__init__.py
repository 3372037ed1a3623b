"""The screens of jobs, queue and quarantine, and what they add to the screens of executions and tasks."""

from harbor_refresh.tasks.admin import execution, job, quarantine, queue, task

__all__ = ["execution", "job", "quarantine", "queue", "task"]
