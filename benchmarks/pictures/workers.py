"""bench-workers: throughput of claim+celery, by the number of workers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, FAINT, number, picture, plain_ticks, ticks_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "workers"

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    rows = sorted((row for row in rows if row["executions_per_second"]), key=lambda row: row["workers"])
    counts = [row["workers"] for row in rows]
    speeds = [row["executions_per_second"] for row in rows]

    def bars(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        shown = ax.bar(counts, speeds, color=BLUE, width=0.55)
        ax.bar_label(shown, [number(speed) for speed in speeds], padding=3)
        ax.grid(visible=False, axis="x")
        ticks_at(ax.xaxis, counts)
        plain_ticks(ax.yaxis)
        each = rows[0]["concurrency"] if rows else 1
        ax.set_xlabel(f"workers, {each} process{'es' if each > 1 else ''} each")
        ax.set_ylabel("executions a second")
        ax.margins(y=0.15)
        if cores := _cores(rows):
            ax.set_title(cores, fontsize=9.5, color=FAINT, loc="left")

    return picture(folder / "bench-workers", _title(rows), about, bars, height=3.9)


def _cores(rows: Rows) -> str:
    """Name the number of cores: a flat line may mean that the machine has no core left."""
    cores = rows[0].get("cores") if rows else None
    return f"all on one machine of {cores} cores, with PostgreSQL and Redis" if cores else ""


def _title(rows: Rows) -> str:
    if len(rows) < 2:
        return "Executions a second, by the number of workers"
    first, best = rows[0], max(rows, key=lambda row: row["executions_per_second"])
    times = best["executions_per_second"] / first["executions_per_second"]
    most = f"{best['workers']} {'worker refreshes' if best['workers'] == 1 else 'workers refresh'}"
    return f"{most} most, {times:.1f} times as much as {first['workers']}"
