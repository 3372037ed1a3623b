"""Work on actions: a verb for all executions that a filter chooses, page by page.

A worker works on an action for a slice of time, and then sends the tick of the next slice. A terminal works on its
own action until it has ended. Both run the same code.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from harbor_refresh.executions.actions import action_lease
from harbor_refresh.executions.actions.bulk import LEASE, ask, find, resume
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import LeaseLost
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import OPEN, Origin, Verb
from harbor_refresh.executions.queries.filters import Filter
from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.bulk_slice import Slice
from harbor_refresh.tasks.pipeline import tick
from harbor_refresh.tasks.queue.node import this_node

#: A refresh may wait for the only process of a worker, so a slice is short.
SLICE_SECONDS = 2.0


def ask_and_wake(verb: Verb, chosen: Filter, *, by: str, origin: Origin, **more: Any) -> Action:
    """Ask for an action, and send a tick after the commit for a worker that begins it. `more`: see `ask`."""
    with transaction.atomic():
        action = ask(verb, chosen, by=by, origin=origin, **more)
        transaction.on_commit(wake)
    return action


def resume_and_wake(action_id: int, origin: Origin) -> Action:
    """Open an action again, as `resume` does, for a worker that goes on with it."""
    with transaction.atomic():
        action = resume(action_id, origin)
        transaction.on_commit(wake)
    return action


def wake() -> None:
    """Send a tick if actions wait for a worker and none works on one. A worker that works on one sends the next
    tick by itself, so ticks do not pile up, however many actions are asked for.

    What if the tick is lost, or its worker dies: recovery wakes again, every few seconds.
    """
    of_workers = Action.objects.filter(state__in=OPEN).exclude(requested_from=Origin.TERMINAL)
    held = of_workers.filter(held_until__range=(Now(), Now() + 2 * LEASE))
    if held.exists() or not of_workers.exists():
        return
    try:
        tick.send("tasks.act")
    except Exception as exc:  # a tick is only a hint: no error of the broker's client may fail the caller
        signals.action_unsent.send(sender=wake, error=said_by(exc))


def work(
    action_id: int | None = None,
    *,
    seconds: float | None = SLICE_SECONDS,
    on_page: Callable[[], bool] = lambda: False,
) -> Action | None:
    """Work on an action, and return it as it is then; None if there is none, or if another process works on it.

    1. Take the lease of this action, or of the one that was worked on the longest ago.
    2. Count what its filter chooses, once.
    3. Do page after page until the action is done or is to stop, or until the time is up, but at least one. The
       progress commits together with the work.
    4. Release the lease.

    `seconds`: None, until it has ended. `on_page` is called after each commit and returns whether to stop.

    What if the process dies: the page in progress is rolled back, and is done again by the process that takes the
    expired lease. If processes die at one place again and again, the action fails and names the place. What if the
    database is away: DatabaseAway, and the action goes on when the lease has expired. What if another process has
    taken the action over, or has stopped it: this one writes nothing more.
    """
    with absence_translated():
        held = action_lease.take(this_node.name, action_id)
        if held is None:
            return None
        slice_ = Slice(held, seconds, on_page)
        try:
            result = slice_.run()
        except LeaseLost:
            return find(held.action.pk)
        held.release(result.state, result.error)
        action = find(held.action.pk)
    if slice_.troubles:
        signals.action_troubled.send(sender=work, action=action, reasons=slice_.troubles)
    if action.has_ended:
        signals.action_ended.send(sender=work, action=action)
    return action
