"""The rows of handlers: one for each function that is registered in this process."""

from django.db import transaction
from django.db.models.functions import Now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.models import Subscription
from harbor_refresh.executions.models.notifications import Kind
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.news.handlers import handlers

MAX_NAME = 200
#: The name of its subscription begins with that.
PREFIX = "handler "


def keep_rows() -> None:
    """Make the rows of all handlers and bring their filters up to date. A handler whose code is gone rests: its
    row and its deliveries stay, no new ones are written, and it goes on when its code is back.

    A handler is told of changes from the moment on at which its row is made. `enabled` is the administrator's.

    Two processes at once: the rows are locked, and a row that both make is made once. If their code differs, as in
    the middle of a deployment, the one that started last decides.
    """
    wanted = handlers()
    with absence_translated(), transaction.atomic():
        rows = Subscription.objects.filter(kind=Kind.HANDLER)
        Subscription.objects.bulk_create(
            (
                Subscription(kind=Kind.HANDLER, name=f"{PREFIX}{name}"[-MAX_NAME:], handler=name)
                for name in sorted(wanted.keys() - set(rows.values_list("handler", flat=True)))
            ),
            ignore_conflicts=True,
        )
        missing = []
        for row in rows.select_for_update().order_by("pk"):
            one = wanted.get(row.handler)
            if one is None:
                if row.missing_since is None:
                    missing.append(row.handler)
                    rows.filter(pk=row.pk).update(missing_since=Now())
                continue
            values = {
                "vendor_types": list(one.vendors),
                "statuses": list(one.statuses),
                "triggers": list(one.triggers),
                "missing_since": None,
            }
            if any(getattr(row, name) != value for name, value in values.items()):
                rows.filter(pk=row.pk).update(**values)
    if missing:
        signals.handlers_missing.send(sender=keep_rows, handlers=missing)
