"""The tables. `execution` and `task` have Harbor's columns; whatever is not Harbor's has a table of its own."""

from executions.models.execution import Execution
from executions.models.quarantine import Quarantine, Release
from executions.models.status_change import StatusChange
from executions.models.task import Task

__all__ = ["Execution", "Quarantine", "Release", "StatusChange", "Task"]
