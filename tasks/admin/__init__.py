"""The screens of actions, jobs, queue and quarantine, and what they add to the screens of executions and tasks."""

from harbor_refresh.tasks.admin import action, execution, job, quarantine, queue, task

__all__ = ["action", "execution", "job", "quarantine", "queue", "task"]
