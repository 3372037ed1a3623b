"""The screens for operators, one a module.

They observe; nobody edits a status here. No screen counts a whole table, and none costs more because there are
more rows. What acts on the queue and on jobs is added by tasks/admin.
"""

from executions.admin import execution, status_change, task

__all__ = ["execution", "status_change", "task"]
