"""Callbacks: functions that are called when one execution ends, and not when any execution does (handlers.py).

A callback is recorded with its execution. Its function has a subscription of the kind `callback`, so its
deliveries are rows like those of handlers. A change is delivered to it only if the execution has a callback of
this function for that status.
"""

from collections.abc import Callable, Sequence
from copy import copy

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Callback, Delivery, Execution, Subscription
from harbor_refresh.executions.models.notifications import Kind
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit
from harbor_refresh.executions.news.handlers import Change
from harbor_refresh.executions.status import Status

#: The name of its subscription begins with that.
PREFIX = "callback "
MAX_HANDLER = (Subscription._meta.get_field("name").max_length or 0) - len(PREFIX)

#: Calls a function for an end.
Call = Callable[[Change, Callback], object]
#: Returns how to call the function of this name; None if its code is not here. `tasks/apps.py` sets it.
find: Callable[[str], Call | None] = lambda _: None  # noqa: E731


def make_subscriptions(callbacks: Sequence[Callback]) -> None:
    """Make the subscriptions of these callbacks that are missing. A start does so before its transaction: of two
    transactions that make the same one, the second waits for the end of the first."""
    handlers = {one.handler for one in callbacks}
    known = Subscription.objects.filter(kind=Kind.CALLBACK, handler__in=handlers).values_list("handler", flat=True)
    missing = sorted(handlers.difference(known))
    new = [Subscription(kind=Kind.CALLBACK, name=f"{PREFIX}{one}", handler=one) for one in missing]
    Subscription.objects.bulk_create(new, ignore_conflicts=True)


def record(execution_id: int, callbacks: Sequence[Callback]) -> None:
    """Record these callbacks for a new execution, in the transaction that makes it and before its status can
    change. So each of its ends finds the callbacks and their subscriptions. If a subscription is being deleted,
    this waits for that, and makes another one. A deletion that comes later waits for this transaction, and is
    refused."""
    handlers = {one.handler for one in callbacks}
    if handlers - _held(handlers):
        make_subscriptions(callbacks)
        if missing := sorted(handlers - _held(handlers)):
            raise Refused(
                f"a webhook may have the name of a callback, {PREFIX + missing[0]!r}: give it another one"
            )
    rows = [copy(one) for one in callbacks]  # a transaction that is tried again has the same callbacks
    for row in rows:
        row.execution_id = execution_id
    Callback.objects.bulk_create(rows)


def tell_first_failure(execution_id: int) -> None:
    """Have the callbacks called that ask for the first failed task, in the transaction that notes it. The caller
    has locked the execution. A second call changes nothing.

    No status has changed, so the delivery has the same status twice, and the revision 0, which no change has.
    """
    asked = Callback.objects.filter(execution_id=execution_id, statuses=[]).values("handler")
    told = Delivery.objects.filter(subscription=OuterRef("pk"), execution_id=execution_id, revision=0)
    listen = Subscription.objects.filter(
        ~Exists(told), kind=Kind.CALLBACK, enabled=True, missing_since=None, handler__in=asked
    )
    execution = {"execution_id": execution_id, "vendor_type": Execution.objects.get(pk=execution_id).vendor_type}
    change = {"revision": 0, "from_status": Status.RUNNING, "to_status": Status.RUNNING, "changed_at": Now()}
    new = [Delivery(subscription=one, **execution, **change) for one in listen.order_by("pk")]
    if Delivery.objects.bulk_create(new):
        tell_changes_written_after_commit()


def _held(handlers: set[str]) -> set[str]:
    """Those that have a subscription, which is not deleted before the end of the transaction."""
    return {handler for (handler,) in run("deliveries/hold_callback_subscriptions", handlers=sorted(handlers))}


def function_of(handler: str) -> Callable[[Change], None] | None:
    """Return what calls the callbacks of this function for a change; None if its code is not here."""
    call = find(handler)
    if call is None:
        return None

    def call_each(change: Change) -> None:
        """Call the callbacks of the change's execution, in the order in which they were given. If one raises, all
        are called again later.

        An execution that has changed since is left alone: it was opened again, and if it has ended again, that end
        has a delivery of its own. Of a deleted execution each end is told. A first failure is told in any case.
        """
        of_handler = Callback.objects.filter(execution_id=change.execution_id, handler=handler).order_by("pk")
        if change.revision == 0:  # a first failure
            of_handler = of_handler.filter(statuses__len=0)
        else:
            changed = Execution.objects.filter(pk=change.execution_id).exclude(revision=change.revision)
            of_handler = of_handler.filter(~Exists(changed), statuses__contains=[change.to_status])
        for one in of_handler:
            call(change, one)

    return call_each
