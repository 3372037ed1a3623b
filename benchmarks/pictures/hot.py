"""bench-hot: the number of refreshes when all tasks of one execution end at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, GREY, number, picture, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "hot"

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    names = [_name(row) for row in rows]

    def bars(_: "Figure", axes: "Sequence[Axes]") -> None:
        many, few = axes
        calls = [row["calls"] for row in rows]
        refreshes = [row["refreshes"] or 0 for row in rows]
        _pair(many, names, calls, refreshes)
        reporting = [row["seconds_reporting"] for row in rows]
        _times(few, names, reporting, [row["seconds_till_true"] or 0.0 for row in rows])

    height = 2.4 + 0.75 * len(rows)
    return picture(folder / "bench-hot", _title(rows), about, bars, height=height, panels=(1.25, 1), share_y=True)


def _pair(ax: "Axes", names: Sequence[str], calls: Sequence[float], refreshes: Sequence[float]) -> None:
    places = range(len(names))
    for values, offset, colour, label in (
        (calls, -0.2, GREY, "calls that report, each a refresh if done naively"),
        (refreshes, 0.2, BLUE, "refreshes there were"),
    ):
        shown = ax.barh([place + offset for place in places], values, 0.36, color=colour, label=label)
        ax.bar_label(shown, [number(value) for value in values], padding=4)
    ax.set_yticks(list(places), names)
    ax.invert_yaxis()
    ax.margins(x=0.2)
    ax.grid(visible=False, axis="y")
    plain_ticks(ax.xaxis)
    ax.set_xlabel("how many")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9.5)


def _times(ax: "Axes", names: Sequence[str], reporting: Sequence[float], true_after: Sequence[float]) -> None:
    """Draw the moment of the last committed report, and how much later the status was true."""
    places = range(len(names))
    ax.barh(places, reporting, 0.5, color=GREY, label="until all is reported")
    shown = ax.barh(places, true_after, 0.5, left=reporting, color=BLUE, label="until it is true")
    ends = [
        f"{number(round(a, 1))} s + {number(round(b, 2))} s" for a, b in zip(reporting, true_after, strict=True)
    ]
    ax.bar_label(shown, ends, padding=4)
    ax.set_xlim(0, max(map(sum, zip(reporting, true_after, strict=True))) * 1.75)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("seconds")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9.5)


def _name(row: dict[str, Any]) -> str:
    return "one\na call" if row["batch"] == 1 else f"{row['batch']}\na call"


def _title(rows: Rows) -> str:
    tasks, processes = number(rows[0]["tasks"]), rows[0]["processes"]
    errors = sum(row["errors"] for row in rows)
    met = f"{number(errors)} errors" if errors else "no error"
    return f"{tasks} tasks of one execution end at once, {processes} reporters: {met}"
