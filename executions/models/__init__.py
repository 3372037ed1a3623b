"""The tables. `execution` and `task` have Harbor's columns; data that Harbor does not have is in other tables."""

from executions.models.execution import Execution
from executions.models.quarantine import Quarantine, Release
from executions.models.status_change import StatusChange
from executions.models.task import Task

__all__ = ["Execution", "Quarantine", "Release", "StatusChange", "Task"]
