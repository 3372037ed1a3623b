"""The screens for operators, one a module.

They observe; no screen edits a status. No screen counts a whole table, so none costs more if there are more rows.
tasks/admin adds the actions on the queue and on jobs.
"""

from harbor_refresh.executions.admin import access, execution_page, subscription

__all__ = ["access", "execution_page", "subscription"]
