"""bench-freshness: how long a report takes to be true in its execution, by the rate of reports."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, RED, number, picture, plain_ticks, seconds, ticks_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "freshness"

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    woken = [row for row in rows if row["wake_up"] and row["p50"]]
    scheduled = [row for row in rows if not row["wake_up"] and row["p50"]]

    def lines(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        _pair(ax, woken, BLUE, "o", "with the wake-up")
        _pair(ax, scheduled, RED, "s", _every(scheduled))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ticks_at(ax.xaxis, sorted({row["rate"] for row in rows}))
        plain_ticks(ax.yaxis, seconds)
        ax.set_xlabel(_sent(rows))
        ax.set_ylabel("from the report to the true status")
        ax.margins(x=0.08, y=0.12)
        if woken or scheduled:
            ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.17), ncols=2, fontsize=9.5)

    return picture(folder / "bench-freshness", _title(woken, scheduled), about, lines, height=4.6)


def _pair(ax: "Axes", rows: Rows, colour: str, marker: str, name: str) -> None:
    if not rows:
        return
    rows = sorted(rows, key=lambda row: row["rate"])
    rates = [row["achieved"] for row in rows]
    low, high = ([row[key] for row in rows] for key in ("p50", "p99"))
    ax.fill_between(rates, low, high, color=colour, alpha=0.1, linewidth=0)
    ax.plot(rates, high, color=colour, marker=marker, linestyle="--", fillstyle="none", label=f"{name}: p99")
    ax.plot(rates, low, color=colour, marker=marker, label=f"{name}: p50")
    for value, above in ((low[-1], -1), (high[-1], 1)):
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": colour, "fontsize": 9.5}
        at = (rates[-1], value)
        ax.annotate(seconds(value), at, (0, 10 * above), textcoords="offset points", **style)


def _sent(rows: Rows) -> str:
    """The label of the x axis. An overloaded machine sends fewer reports than it was asked to."""
    rates = sorted({row["rate"] for row in rows})
    late = any(row["achieved"] < 0.95 * row["rate"] for row in rows)
    return f"reports a second that were sent, of {', '.join(map(number, rates))}" if late else "reports a second"


def _every(rows: Rows) -> str:
    return f"a tick every {rows[0]['interval']:g} s alone" if rows else ""


def _title(woken: Rows, scheduled: Rows) -> str:
    if not woken:
        return "How long a report takes to be true in its execution"
    slowest = seconds(max(row["p50"] for row in woken))
    than = f", {seconds(max(row['p50'] for row in scheduled))} by the schedule alone" if scheduled else ""
    return f"Half of all reports are true within {slowest}{than}"
