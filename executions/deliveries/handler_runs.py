"""Run handlers: the functions of executions/news/handlers.py, and those of callbacks (callbacks.py)."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from harbor_refresh.executions.deliveries.answers import MAX_ERROR, backoff
from harbor_refresh.executions.deliveries.changes import read_changes
from harbor_refresh.executions.deliveries.claims import Claimed, Outcome, Result, claim, record, with_due
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.models.notifications import Kind
from harbor_refresh.executions.news import callbacks, signals
from harbor_refresh.executions.news.handlers import Change, handlers
from harbor_refresh.executions.text import made_storable, said_by

#: A call that goes on for longer than this is made a second time meanwhile. `tasks.run_handlers` ends it before.
LEASE_SECONDS = 60.0
#: So long a handler that another worker was asked to run is left to that worker.
ASKED_SECONDS = 10.0
#: A run of a handler, or of deliveries to webhooks, begins nothing after so long and asks for another one.
RUN_SECONDS = 10.0
MOST_AT_ONCE = 100
#: How long until a handler is tried again if a worker does not have its code.
WITHOUT_CODE_SECONDS = 60.0

Function = Callable[[Change], object]
#: What each call is made within.
Around = Callable[[], AbstractContextManager[None]]


def due_handlers() -> list[int]:
    """Return the handlers that have something to do and that no worker runs. They are left to the caller for a
    while."""
    with transaction.atomic():
        free = with_due().exclude(kind=Kind.WEBHOOK).order_by("pk").values_list("pk", flat=True)
        ids = list(free.select_for_update(no_key=True, skip_locked=True, of=("self",)))
        if ids:
            Subscription.objects.filter(pk__in=ids).update(retry_at=Now() + timedelta(seconds=ASKED_SECONDS))
    return ids


def run_handler(subscription_id: int, around: Around = nullcontext) -> bool:
    """Call a handler for what is due, each time within `around`. Return whether it may have more to do.

    One execution is claimed at first, and more at a time while the handler is quick. If a call raises, its
    delivery is tried again later, and the other ones go on.

    What if the process dies: what it claimed is due again when its lease ends, and has had an attempt. The next
    run claims one delivery first. So a call that ends its process each time is soon alone in its claim, and costs
    others no attempts. What if two run a handler at once: they have different executions.
    """
    subscriptions = Subscription.objects.filter(pk=subscription_id)
    subscription = subscriptions.first()
    if subscription is None:
        return False
    function = _function_of(subscription)
    room, until = 1, time.monotonic() + RUN_SECONDS
    while time.monotonic() < until:
        subscriptions.update(retry_at=Now() + timedelta(seconds=LEASE_SECONDS))
        claimed = claim(room, LEASE_SECONDS, only=subscription_id)
        if not claimed:
            break
        began = time.monotonic()
        record(_results(subscription.handler, function, claimed, until, around))
        room = min(MOST_AT_ONCE, 2 * room) if time.monotonic() < began + 1 else 1
    subscriptions.update(retry_at=None)
    return bool(claimed)


def _function_of(subscription: Subscription) -> Function | None:
    """Return the function of a handler, or what calls the callbacks of a function; None if the code is not
    here."""
    if subscription.kind == Kind.CALLBACK:
        return callbacks.function_of(subscription.handler)
    registered = handlers().get(subscription.handler)
    return registered.function if registered else None


def _results(
    name: str, function: Function | None, claimed: list[Claimed], until: float, around: Around
) -> list[Result]:
    if function is None:
        error = "a worker was asked that does not have the code of this handler"
        return [Result(one, Outcome.AGAIN, error, WITHOUT_CODE_SECONDS) for one in claimed]
    changes = read_changes(claimed)
    return [
        _call(name, function, one, changes[one.id], around)
        if number == 0 or time.monotonic() < until
        else Result(one, Outcome.UNSENT)
        for number, one in enumerate(claimed)
    ]


def _call(name: str, function: Function, claimed: Claimed, change: Change, around: Around) -> Result:
    try:
        with around():
            function(change)
    except Exception as exc:
        error = made_storable(said_by(exc))[:MAX_ERROR]
        signals.handler_failed.send(sender=run_handler, handler=name, change=change, error=error)
        return Result(claimed, Outcome.AGAIN, error, backoff(claimed.attempt))
    return Result(claimed, Outcome.DELIVERED)
