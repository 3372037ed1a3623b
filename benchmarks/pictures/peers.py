"""bench-peers: the time from the start of many jobs to the moment at which all have run, ours and others."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, GREY, RED, number, picture, plain_ticks, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "peers"
WAYS = {False: ("undisturbed", BLUE), True: ("one of the workers is killed half-way", RED)}

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    names = list(dict.fromkeys(row["way"] for row in rows))

    def bars(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for killed, (label, colour) in WAYS.items():
            mine = [row for row in rows if row["killed"] is killed]
            at = [names.index(row["way"]) + (0.2 if killed else -0.2) for row in mine]
            colours = [colour if row["seconds"] else GREY for row in mine]
            lengths = [row["seconds"] or max(one["seconds"] or 0.0 for one in rows) for row in mine]
            shown = ax.barh(at, lengths, 0.36, color=colours)
            ax.bar_label(shown, [_label(row) for row in mine], padding=4)
            ax.barh([0], [0], color=colour, label=label)
        if any(row["seconds"] is None for row in rows):
            ax.barh([0], [0], color=GREY, label="never, while it was watched")
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.margins(x=0.25)
        ax.grid(visible=False, axis="y")
        plain_ticks(ax.xaxis, seconds)
        ax.set_xlabel("from the start until all jobs have run")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9.5, ncols=2)

    title = f"{number(rows[0]['jobs'])} jobs under one parent, beside its peers"
    return picture(folder / "bench-peers", title, about, bars, height=4.8)


def _label(row: dict[str, Any]) -> str:
    if row["seconds"]:
        return seconds(row["seconds"])
    return f"{number(row['lost'])} not run"
