"""An action as data for programs and as a sentence for people."""

from typing import Any

from harbor_refresh.executions.management.output import Answer
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import State, Verb
from harbor_refresh.executions.text import plural

DID = {
    Verb.STOP: "stopped",
    Verb.RETRY: "retried",
    Verb.RESUME: "resumed",
    Verb.REFRESH: "refreshed",
    Verb.DELETE: "deleted",
}


def as_data(action: Action) -> dict[str, Any]:
    return {
        "action": action.pk,
        "verb": action.verb,
        "filter": action.filter,
        "state": action.state,
        "total": action.total,
        "done": action.done,
        "changed": action.changed,
        "skipped": action.skipped,
        "failed": action.failed,
        "requested_by": action.requested_by,
        "requested_from": action.requested_from,
        "created_at": action.created_at.isoformat(),
        "ended_at": action.ended_at and action.ended_at.isoformat(),
        "error": action.error,
    }


def summary(action: Action) -> str:
    did = DID[Verb(action.verb)]
    return (
        f"Action {action.pk}: {plural(action.changed, 'execution')} {did}, "
        f"{action.skipped:,} left as they are, {action.failed:,} failed."
    )


def answer_of(action: Action) -> Answer:
    """The answer of a command that worked on the action. It fails if not all was done."""
    failure = ""
    if action.state == State.STOPPED:
        failure = f"it was stopped before its end. To go on: manage.py harbor actions --resume {action.pk}"
    elif action.state == State.FAILED:
        failure = f"{action.error}. To go on: manage.py harbor actions --resume {action.pk}"
    elif action.state != State.DONE:
        failure = f"another process took it over. To see how it goes on: manage.py harbor actions {action.pk}"
    elif action.failed:
        failure = f"{plural(action.failed, 'execution')} failed, the first of them: {action.error}"
    return Answer(as_data(action), [summary(action)], failure)
