"""Actions on many executions: ask for one, stop it, open it again. `tasks/operations/bulk.py` works on them.

An action is a row, so it survives every process. Its filter chooses executions page by page, in the order of their
ids. A stop may change the status that the filter asks for; the cursor passes each execution once all the same.
"""

from datetime import timedelta

from django.db import transaction

from harbor_refresh.executions.access.audit import Kind, Person, note
from harbor_refresh.executions.actions.action_pages import highest_id
from harbor_refresh.executions.attached.ownership import Operation, refuse_if_attached
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import ActionEnded, NoSuchAction, Refused, TooManyActions
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import MAX_NAME, OPEN, Origin, State, Verb
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.text import made_storable

#: How long a process may be silent until another one takes its action over.
LEASE = timedelta(seconds=30)
MAX_OPEN = 100
#: The verbs that Harbor does while this service is attached to it.
OPERATIONS = {
    Verb.STOP: Operation.STOP,
    Verb.RETRY: Operation.RUN_AGAIN,
    Verb.RESUME: Operation.RUN_AGAIN,
    Verb.DELETE: Operation.DELETE,
}


def ask(
    verb: Verb,
    chosen: Filter,
    *,
    by: str,
    origin: Origin,
    address: str = "",
    everything: bool = False,
    highest: int | None = None,
    total: int | None = None,
) -> Action:
    """Ask for an action; return its row. It touches no execution that is created later. Its entry in the log of
    actions commits with it: `by`, `origin` and `address` are of the person (executions/access/audit.py).

    `everything`: the filter may be empty. `highest` and `total` are of a count that was shown before, so that the
    action touches only what was counted. Nothing is counted here, because the caller does not wait for a count.

    Raises OwnedByHarbor for a verb that is Harbor's, Refused for an empty filter, and TooManyActions if MAX_OPEN
    are open. Two callers at once may exceed that by one.
    """
    if verb in OPERATIONS:
        refuse_if_attached(OPERATIONS[verb])
    refuse_empty(chosen, everything=everything)
    waits = origin != Origin.TERMINAL  # a command does its own work at once
    if waits and Action.objects.filter(state__in=OPEN).exclude(requested_from=Origin.TERMINAL).count() >= MAX_OPEN:
        raise TooManyActions(f"{MAX_OPEN} actions are open; wait until one has ended, or stop one")
    with transaction.atomic():
        action = Action.objects.create(
            verb=verb,
            filter=chosen.as_json(),
            highest=highest_id() if highest is None else highest,
            total=total,
            requested_by=made_storable(by)[:MAX_NAME],
            requested_from=origin,
        )
        person = Person(by, origin, address)
        note(person, verb, Kind.EXECUTION, chosen.as_text() or "all", action=action)
    return find(action.pk)


def refuse_empty(chosen: Filter, *, everything: bool) -> None:
    """Raise Refused for a filter without a condition, unless every execution is meant."""
    if chosen.is_empty and not everything:
        raise Refused("the filter is empty, so it chooses every execution; if that is meant, say so with `all`")


def find(action_id: int) -> Action:
    action = Action.objects.filter(pk=action_id).first()
    if action is None:
        raise NoSuchAction(action_id)
    return action


def stop_action(action_id: int) -> Action:
    """Stop an action: at once if no process works on it, else at the end of the page in progress. Asking twice
    changes nothing. Raises ActionEnded if it has ended.

    What if its process ends it at this moment: one of the two waits for the row. What if its process dies before
    it sees the question: the next process that takes the action stops it.
    """
    with transaction.atomic():
        is_open = bool(run("stop_action", id=action_id, lease=LEASE))
        action = find(action_id)
    if not is_open:
        raise ActionEnded(f"action {action_id} has ended: it is {action.state}")
    return action


def resume(action_id: int, origin: Origin) -> Action:
    """Open an action again that was stopped, has failed or lost its process. It goes on where it ended; executions
    that failed are not tried again."""
    with transaction.atomic():
        is_open = bool(run("resume_action", id=action_id, lease=LEASE, origin=str(origin)))
        action = find(action_id)
    if not is_open:
        reason = "it is done" if action.state == State.DONE else f"{action.holder} works on it"
        raise Refused(f"action {action_id} cannot be resumed: {reason}")
    return action
