"""The latest overview of this process: one look for all pages that are open.

A page gets an answer that is at most FRESH_SECONDS old. If fifty pages ask at once, then one thread looks, and the
requests wait for its answer. If PostgreSQL hangs, then the first requests wait for PATIENCE_SECONDS; later
requests are told at once that it does not answer, until the look comes back.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.core.checks import CheckMessage

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.checks.examination import findings
from harbor_refresh.tasks.jobs.limits import in_use
from harbor_refresh.tasks.overview import events, samples
from harbor_refresh.tasks.overview.events import Told
from harbor_refresh.tasks.overview.samples import Point
from harbor_refresh.tasks.overview.state import State, look

FRESH_SECONDS = 1.5
PATIENCE_SECONDS = 3.0
HANGS = "PostgreSQL: it does not answer"
EVENTS = 12


@dataclass(frozen=True)
class Overview:
    """What the dashboard shows of one moment. `points` are those of the last two minutes. `limits`: each limit of
    jobs, with how many have a place in it, and how many wait for it."""

    at: datetime
    state: State
    findings: list[CheckMessage]
    told: list[Told] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    limits: list[dict[str, Any]] = field(default_factory=list)


def take() -> Overview:
    """Look at all servers. Add a sample if no worker has added one lately."""
    state = look()
    known: dict[str, Any] = {}
    if "database" not in state.absent:
        try:
            with absence_translated():
                points = samples.read("minutes")
                if not any(point.refreshes is not None for point in points[-2:]):
                    samples.record(state)
                known = {"points": points, "told": events.latest(EVENTS), "limits": in_use()}
        except DatabaseAway as exc:
            state = State(absent={**state.absent, "database": str(exc)})
    return Overview(datetime.now(UTC), state, findings(state), **known)


looks = Flight(take, fresh=FRESH_SECONDS)


def latest() -> Overview:
    """Return the latest overview. Takes PATIENCE_SECONDS at most."""
    try:
        return looks.answer(PATIENCE_SECONDS)
    except Late:
        state = State(absent={"database": HANGS})
        return Overview(datetime.now(UTC), state, findings(state))
