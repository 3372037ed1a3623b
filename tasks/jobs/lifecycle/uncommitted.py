"""What the open transaction has done to an execution, so that waiting for its end before the commit would be in
vain: jobs that it has recorded, which are published after the commit, or the close of an open execution."""

from functools import partial

from django.db import connection, transaction

from tasks.jobs.lifecycle import publication


def note(execution_id: int) -> None:
    """Note that the open transaction has closed this execution."""
    transaction.on_commit(partial(_is_committed, execution_id=execution_id))


def _is_committed(*, execution_id: int) -> None:
    """Do nothing: among the calls after the commit, it is the note."""


def is_uncommitted(execution_id: int) -> bool:
    """Whether the open transaction has closed this execution, or will publish jobs of it after its commit. What a
    rollback to a savepoint has undone does not count."""
    return any(
        isinstance(call, partial)
        and call.func in (publication.publish_after_commit, _is_committed)
        and call.keywords.get("execution_id") == execution_id
        for _, call, *_ in connection.run_on_commit
    )
