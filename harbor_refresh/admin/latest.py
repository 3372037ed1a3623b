"""The latest overview of this process: one look for all open pages, at most FRESH_SECONDS old (a flight, see
web/flights.py); and the points of the charts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.core.checks import CheckMessage

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import Shown, problems
from harbor_refresh.tasks.jobs.limits import in_use
from harbor_refresh.tasks.news import events, samples
from harbor_refresh.tasks.news.events import Told
from harbor_refresh.tasks.news.samples import Point
from harbor_refresh.tasks.news.state import OF_DATABASE, ServiceState, look
from harbor_refresh.web.flights import Flight

FRESH_SECONDS = 1.5
HANGS = "PostgreSQL: it does not answer"
EVENTS = 12


@dataclass(frozen=True)
class Overview:
    """What the dashboard shows of one moment. `points` are those of the last two minutes. `limits`: each limit of
    jobs, with how many have a place in it, and how many wait for it."""

    at: datetime
    state: ServiceState
    findings: list[CheckMessage]
    told: list[Told] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    limits: list[dict[str, Any]] = field(default_factory=list)


def findings(state: ServiceState) -> list[CheckMessage]:
    """Return what is wrong in this state. No server is asked again."""
    return problems(Shown.DASHBOARD, Facts(glance=state))


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
                known = {"points": points, "told": events.latest(EVENTS, state.dead or ()), "limits": in_use()}
        except DatabaseDown as exc:
            unknown: dict[str, Any] = dict.fromkeys(OF_DATABASE)
            state = replace(state, absent={**state.absent, "database": str(exc)}, **unknown)
    return Overview(datetime.now(UTC), state, findings(state), **known)


def hanging() -> Overview:
    """What is shown while PostgreSQL hangs."""
    state = ServiceState(absent={"database": HANGS})
    return Overview(datetime.now(UTC), state, findings(state))


looks = Flight(take, hanging, fresh=FRESH_SECONDS)


def latest() -> Overview:
    return looks.answer()


BLUE, ORANGE, GREEN, RED = "#0284c7", "#ea580c", "#16a34a", "#dc2626"


class Line(NamedTuple):
    """`field`: of a Point."""

    label: str
    colour: str
    field: str

    def values(self, points: Sequence[Point]) -> list[float | None]:
        return [getattr(point, self.field) for point in points]


class Chart(NamedTuple):
    """`kind` is `line` or `bar`. `unit` stands beside the numbers of the axis."""

    id: str
    title: str
    kind: str
    lines: tuple[Line, ...]
    unit: str = ""


CHARTS = (
    Chart("backlog", "Waiting executions", "line", (Line("Waiting", BLUE, "backlog"),)),
    Chart("refreshes", "Refreshes a second", "line", (Line("Refreshed", GREEN, "refreshes"),)),
    Chart(
        "lateness",
        "From report to true status",
        "line",
        (Line("Half within", BLUE, "typical"), Line("95 of 100 within", ORANGE, "slow")),
        unit="s",
    ),
    Chart("recoveries", "Taken back from dead workers", "bar", (Line("Executions", RED, "recovered"),)),
)
#: The spans that the page offers, in its order. An open page asks for one every ten seconds, or every minute.
SPANS = ("hour", "day")


def data(chart: Chart, points: Sequence[Point]) -> dict[str, Any]:
    """Return the data of one chart. Times are in UTC, like all times of the admin."""
    return {
        "labels": [point.begins.strftime("%H:%M") for point in points],
        "datasets": [
            {
                "label": line.label,
                "data": [value and round(value, 3) for value in line.values(points)],
                "borderColor": line.colour,
                "backgroundColor": line.colour,
                "displayYAxis": True,
                "suffixYAxis": chart.unit,
                "maxTicksXLimit": 7,
            }
            for line in chart.lines
        ],
    }


def all_data(points: Sequence[Point]) -> dict[str, Any]:
    return {one.id: {"data": data(one, points), "told": told(one, points)} for one in CHARTS}


def told(chart: Chart, points: Sequence[Point]) -> str:
    """Describe the chart in a sentence, for screen readers."""
    known = [value for line in chart.lines for value in line.values(points) if value is not None]
    if not known:
        return f"{chart.title}: there are no samples of this time."
    unit = f" {chart.unit}" if chart.unit else ""
    return f"{chart.title}: from {min(known):,.4g}{unit} to {max(known):,.4g}{unit}, now {known[-1]:,.4g}{unit}."
