"""Charts: the points of an hour or a day, as Chart.js takes them through unfold's component."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harbor_refresh.dashboard.latest import PATIENCE_SECONDS
from harbor_refresh.monitoring.flights import Flight, Late
from harbor_refresh.tasks.overview import samples
from harbor_refresh.tasks.overview.samples import Point

BLUE, ORANGE, GREEN, RED = "#0284c7", "#ea580c", "#16a34a", "#dc2626"


@dataclass(frozen=True)
class Line:
    label: str
    colour: str
    read: Callable[[Point], float | None]


@dataclass(frozen=True)
class Chart:
    """`kind` is `line` or `bar`. `unit` stands beside the numbers of the axis."""

    id: str
    title: str
    kind: str
    lines: tuple[Line, ...]
    unit: str = ""


CHARTS = (
    Chart("backlog", "Waiting executions", "line", (Line("Waiting", BLUE, lambda point: point.backlog),)),
    Chart("refreshes", "Refreshes a second", "line", (Line("Refreshed", GREEN, lambda point: point.refreshes),)),
    Chart(
        "lateness",
        "From report to true status",
        "line",
        (
            Line("Half within", BLUE, lambda point: point.typical),
            Line("95 of 100 within", ORANGE, lambda point: point.slow),
        ),
        unit="s",
    ),
    Chart(
        "recoveries",
        "Taken back from dead workers",
        "bar",
        (Line("Executions", RED, lambda point: point.recovered),),
    ),
)
#: The points of each span that the page offers, in its order. They are read again when a new sample may be there.
SERIES = {
    "hour": Flight(partial(samples.read, "hour"), fresh=8.0),
    "day": Flight(partial(samples.read, "day"), fresh=60.0),
}


def points_of(span: str) -> list[Point]:
    """Return the points of this span; none if PostgreSQL hangs."""
    try:
        return SERIES[span].answer(PATIENCE_SECONDS)
    except Late:
        return []


def data(chart: Chart, points: Sequence[Point]) -> dict[str, Any]:
    """Return the data of one chart. Times are in UTC, like all times of the admin."""
    return {
        "labels": [point.begins.strftime("%H:%M") for point in points],
        "datasets": [
            {
                "label": line.label,
                "data": [None if (value := line.read(point)) is None else round(value, 3) for point in points],
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
    known = [value for line in chart.lines for point in points if (value := line.read(point)) is not None]
    if not known:
        return f"{chart.title}: there are no samples of this time."
    unit = f" {chart.unit}" if chart.unit else ""
    return f"{chart.title}: from {min(known):,.4g}{unit} to {max(known):,.4g}{unit}, now {known[-1]:,.4g}{unit}."
