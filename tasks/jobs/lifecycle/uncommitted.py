"""Jobs that the open transaction has recorded: they are published after its commit."""

from functools import partial

from django.db import connection

from tasks.jobs.lifecycle import publication


def is_uncommitted(execution_id: int) -> bool:
    """Whether the open transaction will publish jobs of this execution after its commit. Jobs that a rollback to a
    savepoint has undone do not count."""
    return any(
        isinstance(call, partial)
        and call.func == publication.publish_after_commit
        and call.keywords.get("execution_id") == execution_id
        for _, call, *_ in connection.run_on_commit
    )
