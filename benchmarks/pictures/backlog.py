"""bench-backlog: what one execution costs, by the number that wait."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import COLOURS, MARKERS, number, picture, plain_ticks, ticks_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "backlog"

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    measured = [row for row in rows if row.get("us_each")]

    def lines(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for place, strategy in enumerate(strategies):
            mine = sorted((r for r in measured if r["strategy"] == strategy), key=lambda row: row["executions"])
            _line(ax, mine, strategy, COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
        ax.set_xscale("log")
        ax.set_yscale("log")
        ticks_at(ax.xaxis, sorted({row["executions"] for row in rows}))
        plain_ticks(ax.yaxis)
        ax.set_xlabel("executions that wait")
        ax.set_ylabel("µs an execution")
        ax.margins(x=0.06, y=0.1)
        if measured:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9.5, title=_hollow(measured))

    return picture(folder / "bench-backlog", _title(measured), about, lines, height=4.4)


def _line(ax: "Axes", rows: Rows, name: str, colour: str, marker: str) -> None:
    """Draw the line, and a hollow marker over each point that the budget cut."""
    if not rows:
        return
    at = [(row["executions"], row["us_each"]) for row in rows]
    ax.plot(*zip(*at, strict=True), color=colour, marker=marker, label=name)
    cut = [point for point, row in zip(at, rows, strict=True) if row["cut"]]
    if cut:
        ax.plot(*zip(*cut, strict=True), color=colour, marker=marker, linestyle="", markerfacecolor="white")


def _hollow(rows: Rows) -> str | None:
    return "hollow: cut by the budget" if any(row["cut"] for row in rows) else None


def _title(rows: Rows) -> str:
    """The cost of `claim+celery` at the largest size, if it was measured."""
    product = sorted((r for r in rows if r["strategy"] == "claim+celery"), key=lambda row: row["executions"])
    if not product:
        return "What one execution costs, by how many wait"
    last = product[-1]
    return (
        f"With {number(last['executions'])} waiting, claim+celery takes {number(last['us_each'])} µs an execution"
    )
