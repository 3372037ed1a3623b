"""The screens of actions, jobs, limits, queue and quarantine, and what they add to those of executions."""

from harbor_refresh.tasks.admin import action, execution, job, limit, quarantine, queue, task

__all__ = ["action", "execution", "job", "limit", "quarantine", "queue", "task"]
