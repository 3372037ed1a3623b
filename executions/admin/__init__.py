"""The screens for operators, one a module.

They observe, and act through the use cases; nobody edits a status here. No screen counts a whole
table, and none costs more because there are more rows.
"""

from executions.admin import execution, job, quarantine, status_change, task

__all__ = ["execution", "job", "quarantine", "status_change", "task"]
