"""Runs: `tasks.deliver` tells webhooks of status changes; `tasks.run_handlers` calls a handler of
executions/news/handlers.py, or the callbacks of a function."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, OperationalError, transaction
from django.db.models.functions import Now

from harbor_refresh.executions.database import LOCK_TIMEOUT, REFERENCE, absence_translated, run, sqlstate
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import Kind, State
from harbor_refresh.executions.news import callbacks, signals
from harbor_refresh.executions.news.deliveries import answers
from harbor_refresh.executions.news.deliveries.answers import MAX_ERROR, backoff
from harbor_refresh.executions.news.deliveries.claims import Result, claim, read_changes, record, with_due
from harbor_refresh.executions.news.handlers import Change, handlers
from harbor_refresh.executions.text import made_storable, said_by

if TYPE_CHECKING:
    from harbor_refresh.executions.news.deliveries.sender import Sender

#: Changes in one transaction. It is short, and 200 subscriptions write 200 rows for each.
BATCH = 1_000
#: How often the outbox is looked at while there is work.
LOOK_SECONDS = 0.1

MAX_NAME = Subscription._meta.get_field("name").max_length or 0
#: The name of a handler's subscription begins with that.
PREFIX = "handler "
#: A call that goes on for longer than this is made a second time. `tasks.run_handlers` ends it before.
LEASE_SECONDS = 60.0
#: So long a handler that another worker was asked to run is left to that worker.
ASKED_SECONDS = 10.0
#: A run of a handler, or of deliveries to webhooks, begins nothing after so long and asks for another one.
RUN_SECONDS = 10.0
MOST_AT_ONCE = 100
#: The error of a delivery that met no code.
NO_CODE = "a worker was asked that does not have the code of this handler"
#: How long until a handler is tried again if a worker does not have its code.
WITHOUT_CODE_SECONDS = 60.0

Function = Callable[[Change], object]
#: What each call is made within.
Around = Callable[[], AbstractContextManager[None]]


def deliver(ask_handlers: Callable[[], object] = lambda: None, go_on: Callable[[], object] = lambda: None) -> bool:
    """Deliver what is due, until nothing is left to do, or until RUN_SECONDS are over: then `go_on` is called, and
    the result is false. Two runs at once have different deliveries.

    1. Write the deliveries of new changes, and `ask_handlers` to run.
    2. Claim as many as there is room for of each webhook, and send them. If the process dies, they are due again
       when the lease ends, under the same id. If it cannot send (answers.py), they wait for one that can.
    3. Record the results as they come, and look again.
    """
    next_look = time.monotonic()
    until = next_look + RUN_SECONDS
    with _sender() as sender:
        while (now := time.monotonic()) < until:
            told = 0
            if now >= next_look:
                next_look = now + LOOK_SECONDS
                told = write_deliveries()
                ask_handlers()
            if sender and sender.claim():
                sender.record()
            elif not told:
                return True
        go_on()
    return False


def _sender() -> "AbstractContextManager[Sender | None]":
    if not answers.can_send():
        return nullcontext()
    from harbor_refresh.executions.news.deliveries.sender import Sender

    return Sender()


def write_deliveries() -> int:
    """Write the deliveries of all untold changes; return how many changes were told.

    Changes that another process has locked are left to the next call, and so are those behind them. So the changes
    of an execution are written in order, and a run that waits for answers does not wait for locks. If one of
    their subscriptions is deleted at this moment, the changes are left to the next call, too.
    """
    count = 0
    while True:
        try:
            with absence_translated(), transaction.atomic():
                told: int = run("deliveries/write_deliveries", most=BATCH)[0][0]
                if told:
                    crash_points.reach("listed", ())
        except (OperationalError, IntegrityError) as exc:
            if sqlstate(exc) not in (LOCK_TIMEOUT, REFERENCE):
                raise
            return count
        count += told
        if told < BATCH:
            return count


def keep_rows() -> None:
    """Make the rows of all handlers and bring their filters up to date. A handler whose code is gone rests: its
    row and its deliveries stay, no new ones are written, and it goes on when its code is back. A handler is told
    of changes from the moment on at which its row is made.

    If the code of two processes differs, as in the middle of a deployment, the one that comes last decides. A
    handler that it lets rest goes on with the next run of a process that has the code (`go_on_with_handlers`).
    """
    wanted = handlers()
    rows = Subscription.objects.filter(kind=Kind.HANDLER)
    with absence_translated():
        for name, one in wanted.items():
            of_code = {
                "vendor_types": list(one.vendors),
                "statuses": list(one.statuses),
                "triggers": list(one.triggers),
                "missing_since": None,
            }
            if not rows.filter(handler=name, **of_code).exists():
                new = {"name": f"{PREFIX}{name}"[-MAX_NAME:], **of_code}
                try:
                    Subscription.objects.update_or_create(of_code, new, kind=Kind.HANDLER, handler=name)
                except IntegrityError:
                    signals.handler_nameless.send(sender=keep_rows, handler=name)
        gone = rows.exclude(handler__in=wanted).filter(missing_since=None)
        if missing := list(gone.order_by("pk").values_list("handler", flat=True)):
            gone.update(missing_since=Now())
        for handler in missing:
            signals.handler_missing.send(sender=keep_rows, handler=handler)


def go_on_with_handlers() -> None:
    """Have the handlers go on whose code is here, although a process without it has let them rest."""
    rows = Subscription.objects.filter(kind=Kind.HANDLER, handler__in=handlers(), missing_since__isnull=False)
    rows.update(missing_since=None)


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
    """Call a handler for what is due, each time within `around`. Return whether it may have more to do. If a call
    raises, its delivery is tried again later. Two runs of a handler at once have different executions.

    One delivery is claimed first, and more at a time while the handler is quick. If the process dies, what it
    claimed is due again when its lease ends, and has had an attempt. So a call that ends its process each time is
    soon alone in its claim, and costs others no attempts.
    """
    subscriptions = Subscription.objects.filter(pk=subscription_id)
    subscription = subscriptions.first()
    if subscription is None:
        return False
    function = _function_of(subscription)
    if function is None:
        signals.handler_missing.send(sender=run_handler, handler=subscription.handler)
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
    name: str, function: Function | None, claimed: list[Delivery], until: float, around: Around
) -> list[Result]:
    if function is None:
        return [Result(one, State.PENDING, NO_CODE, WITHOUT_CODE_SECONDS, is_attempt=False) for one in claimed]
    changes = read_changes(claimed)
    return [
        _call(name, function, one, changes[one.id], around)
        if number == 0 or time.monotonic() < until
        else Result(one, State.PENDING, is_attempt=False)
        for number, one in enumerate(claimed)
    ]


def _call(name: str, function: Function, claimed: Delivery, change: Change, around: Around) -> Result:
    try:
        with around():
            function(change)
    except Exception as exc:
        error = made_storable(said_by(exc))[:MAX_ERROR]
        signals.handler_failed.send(sender=run_handler, handler=name, change=change, error=error)
        return Result(claimed, State.PENDING, error, backoff(claimed.attempts))
    return Result(claimed, State.DELIVERED)
