"""scaling: executions a second on paper, by the number of workers and how many wait."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pictures.canvas import COLOURS, MARKERS, number, picture, plain_ticks, ticks_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.scaling.drained import Drained

Grid = Sequence[tuple[int, "Drained"]]


def draw(grid: Grid, folder: Path) -> Path:
    sizes = list(dict.fromkeys(one.executions for _, one in grid))

    def lines(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for place, size in enumerate(sizes):
            mine = [(workers, one.per_second) for workers, one in grid if one.executions == size]
            ax.plot(*zip(*mine, strict=True), color=COLOURS[place], marker=MARKERS[place], label=number(size))
        ax.set_xscale("log")
        ticks_at(ax.xaxis, sorted({workers for workers, _ in grid}))
        plain_ticks(ax.yaxis)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("workers of two processes")
        ax.set_ylabel("executions a second")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9.5, title="waiting")

    title = f"On paper, one Redis ends at {number(round(_best(grid), -3))} executions a second"
    about = "Simulated with measured costs: one Redis, one PostgreSQL of 16 cores, see docs/scaling.md"
    return picture(folder / "scaling", title, about, lines, height=3.9)


def _best(grid: Grid) -> float:
    return max(one.per_second for _, one in grid)
