"""bench-progress: the time it takes to read the progress of a parent of many tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, RED, number, picture, plain_ticks, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "progress"

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    names = list(dict.fromkeys(row["way"] for row in rows))
    stages = sorted({row["done"] for row in rows})

    def bars(_: "Figure", axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for place, (name, colour) in enumerate(zip(names, (BLUE, RED), strict=False)):
            found = {row["done"]: row for row in rows if row["way"] == name}
            mine = [found[stage] for stage in stages if stage in found]
            at = [stages.index(row["done"]) + (place - 0.5) * 0.4 for row in mine]
            shown = ax.barh(at, [row["median_ms"] for row in mine], 0.36, color=colour, label=_label(mine))
            ax.bar_label(shown, [seconds(row["median_ms"] / 1000) for row in mine], padding=4)
        ax.set_yticks(range(len(stages)), [f"{stage:.0%} done" for stage in stages])
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.grid(visible=False, axis="y")
        plain_ticks(ax.xaxis, lambda value: seconds(value / 1000))
        ax.set_xlabel("to ask once, median")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9.5)

    return picture(folder / "bench-progress", _title(rows, names), about, bars, height=4.2)


def _label(rows: Rows) -> str:
    row = rows[-1]
    commands = row["redis_commands"]
    how = f"{number(commands)} Redis commands" if commands else f"{row['statements']} SQL statement"
    return f"{row['way']}: {how}"


def _title(rows: Rows, names: Sequence[str]) -> str:
    tasks = number(rows[0]["tasks"])
    if len(names) < 2:
        return f"How far is a parent of {tasks} tasks?"
    counted, celery = (max(row["median_ms"] for row in rows if row["way"] == name) for name in names[:2])
    return f"How far is a parent of {tasks} tasks? {number(round(celery / counted))} times faster to know"
