"""No tables: the execution of tracked jobs is the row that `executions` has."""

from tasks.jobs.execution import TrackedExecution

__all__ = ["TrackedExecution"]
