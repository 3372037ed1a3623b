"""Events: what went wrong and how it healed in the last two days, as the dashboard lists it; and counters of the
metrics that follow the same signals.

One row for each kind and minute adds up what happened, so their number is bounded. An event is written after the
commit of the change that it describes: if the process dies in between, then the log alone has its line. An outage
of PostgreSQL or Redis is no event.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import Error, transaction
from django.dispatch import Signal
from django.utils.timezone import now

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.news import signals as of_executions
from harbor_refresh.executions.news.counters import add
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.models.state import Event, Kind
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.news.state import SeenNode
from harbor_refresh.tasks.sql import run

#: What happened: to one, to many, and the rest of the sentence.
SENTENCES: dict[Kind, tuple[str, str, str]] = {
    Kind.RECOVERED: ("execution was", "executions were", "taken back from dead workers, for others to refresh"),
    Kind.JOBS_RECOVERED: ("job was", "jobs were", "taken back from dead workers, to run again"),
    Kind.DRIFT: ("status that differed was", "statuses that differed were", "marked for a refresh by reconcile"),
    Kind.QUARANTINED: ("execution was", "executions were", "quarantined, because the refresh failed too often"),
    Kind.RELEASED_FROM_QUARANTINE: ("execution left", "executions left", "quarantine for another try"),
    Kind.DELIVERIES_DIED: ("notification was", "notifications were", "given up"),
}
#: What heals; the rest is trouble.
HEALING = frozenset({Kind.RECOVERED, Kind.JOBS_RECOVERED, Kind.DRIFT, Kind.RELEASED_FROM_QUARANTINE})


@dataclass(frozen=True)
class Told:
    at: datetime
    sentence: str
    heals: bool


def latest(count: int, dead: Sequence[SeenNode] = ()) -> list[Told]:
    """Return the latest events, with the deaths that Redis still knows."""
    # the primary key begins with the minute, which has a row for each kind
    rows = Event.objects.exclude(kind=Kind.NODE_DIED).order_by("-minute")[: count + len(Kind)]
    told = [Told(row.last_at, _sentence(row), Kind(row.kind) in HEALING) for row in rows]
    told += [Told(now() - timedelta(seconds=one.silent), f"Node {one.name} died", False) for one in dead]
    return sorted(told, key=lambda one: one.at, reverse=True)[:count]


def _sentence(row: Event) -> str:
    one, many, rest = SENTENCES[Kind(row.kind)]
    return f"{plural(row.count, one, many)} {rest}"


def note(kind: Kind, count: int) -> None:
    """Add to the event of this kind, after the commit of what it tells, which it must not fail."""
    if count > 0:
        with suppress(Error):
            transaction.on_commit(partial(_write, kind, count))


def _write(kind: Kind, count: int) -> None:
    with suppress(Error), transaction.atomic():
        run("add_event", kind=kind, count=count)


#: The counter of the metrics and the kind of event of each signal, which sends `outcome`, `count`,
#: `execution_ids` or `deliveries`. Changed rows are counted with the rows.
ADDS_TO: Mapping[Signal, tuple[str, Kind | None]] = {
    signals.claimed: ("executions_claimed", None),
    signals.marks_lost: ("marks_lost", None),
    signals.recovered: ("executions_recovered", Kind.RECOVERED),
    signals.reconciled: ("drift_marked", Kind.DRIFT),
    signals.runs_released: ("jobs_recovered", Kind.JOBS_RECOVERED),
    of_executions.quarantined: ("", Kind.QUARANTINED),
    of_executions.released_from_quarantine: ("", Kind.RELEASED_FROM_QUARANTINE),
    of_executions.deliveries_died: ("", Kind.DELIVERIES_DIED),
}


def on_signal(signal: Signal, **sent: Any) -> None:
    """Note it, and count it, outside of the transaction of the change, unless the database is down."""
    counter, kind = ADDS_TO[signal]
    rows = sent.get("execution_ids") or sent.get("deliveries") or ()
    how_many = sent["outcome"].marked if "outcome" in sent else sent.get("count") or len(rows)
    if kind:
        note(kind, how_many)
    if counter:
        with suppress(DatabaseDown), absence_translated():
            add({(counter, ""): how_many})


def connect() -> None:
    for signal in ADDS_TO:
        signal.connect(on_signal, dispatch_uid=__name__)
