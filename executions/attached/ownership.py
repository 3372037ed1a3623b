"""Ownership: what this service leaves to Harbor while it is attached to one.

Attached, the rows of executions and tasks are Harbor's. This service refreshes the status of executions, and
writes nothing else there. Each use case that would write more begins with `refuse_if_attached`, so it is refused
before its first statement, from whichever source it came: the API, the hook, the admin, a command, a job or code.
One exception: `attach dead-tasks` ends tasks whose job is gone, because a person asks for it.
"""

from enum import StrEnum

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.errors import OwnedByHarbor


class Operation(StrEnum):
    """What is left to Harbor, and how to have Harbor do it."""

    CREATE = "start it in Harbor"
    REPORT = "its job service reports to the core of Harbor, at /service/notifications/tasks/ID there"
    STOP = "stop it in Harbor, or by its API, such as PUT /api/v2.0/replication/executions/ID"
    RUN_AGAIN = "start it once more in Harbor"
    FINISH = "Harbor sets the status of executions without tasks"
    REFRESH_MANY = (
        "a refresh of many is an execution of ours; type manage.py harbor repair refresh with the filter"
    )
    DELETE = "its sweep deletes old ones, as many as X_EXECUTION_RETENTION_COUNT of its core says for a vendor X"


#: What the pages of executions and tasks say, because buttons that are known from other services are missing.
ON_PAGES = (
    "Harbor owns executions and tasks here, so only Harbor stops, repeats or deletes one: "
    f"{Operation.STOP}; {Operation.RUN_AGAIN}; {Operation.DELETE}."
)


def refuse_if_attached(operation: Operation) -> None:
    """Raise OwnedByHarbor while attached: a use case that writes what Harbor owns begins with this."""
    if is_attached():
        raise OwnedByHarbor(f"Harbor owns executions and tasks here: {operation}")


def page_context() -> dict[str, str]:
    """What a page of executions or tasks says of its owner, if that is a Harbor."""
    return {"harbors_note": ON_PAGES} if is_attached() else {}
