"""What the open transaction has done to an execution, so that waiting for its end before the commit would be in
vain: jobs that it has recorded, which are published after the commit; an addition, which holds the execution open;
the close of an open execution. Its ancestors end after it, so waiting for their end would be in vain as well."""

from functools import partial

from django.db import connection, transaction

from executions import links
from tasks.jobs.lifecycle import publication


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
