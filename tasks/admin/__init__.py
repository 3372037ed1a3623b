"""The screens of jobs and of quarantine; and what jobs and the queue add to those of executions and tasks."""

from tasks.admin import execution, job, quarantine, task

__all__ = ["execution", "job", "quarantine", "task"]
