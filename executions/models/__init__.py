"""The tables. `execution` and `task` have Harbor's columns; whatever is not Harbor's has a table of its own."""

from executions.models.execution import Execution
from executions.models.job import Job
from executions.models.quarantine import Quarantine
from executions.models.redis_memory import RedisMemory
from executions.models.status_change import StatusChange
from executions.models.task import Task
from executions.models.watermark import Release, Watermark

__all__ = ["Execution", "Job", "Quarantine", "RedisMemory", "Release", "StatusChange", "Task", "Watermark"]
