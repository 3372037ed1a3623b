"""Executions that cannot end before the open transaction does, so a wait for their end would last for ever.

The transaction has recorded jobs, which are published after the commit; or it has added something, which holds the
execution open; or it has closed an open execution. The ancestors of such an execution cannot end either."""

from functools import partial

from django.db import connection, transaction

from harbor_refresh.executions import links
from harbor_refresh.tasks.jobs.lifecycle import publication


def note(execution_id: int) -> None:
    """Note that this execution cannot end before the open transaction."""
    transaction.on_commit(partial(_is_committed, execution_id=execution_id))


def _is_committed(*, execution_id: int) -> None:
    """Do nothing: among the calls after the commit, it is the note."""


def is_uncommitted(execution_id: int) -> bool:
    """Whether the open transaction has noted this execution or a descendant, or will publish jobs of one of them
    after its commit. What a rollback to a savepoint has undone does not count."""
    noted = {
        call.keywords["execution_id"]
        for _, call, *_ in connection.run_on_commit
        if isinstance(call, partial) and call.func in (publication.publish_after_commit, _is_committed)
    }
    return bool(noted) and (execution_id in noted or execution_id in links.ancestors(noted))
