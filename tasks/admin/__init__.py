"""The screens of jobs and quarantine, and what they add to the screens of executions and tasks."""

from tasks.admin import execution, job, quarantine, task

__all__ = ["execution", "job", "quarantine", "task"]
