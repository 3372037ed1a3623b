"""bench-strategies: the speed of each strategy, its duplicates, and what a crash costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.pictures.canvas import BLUE, GREY, ORANGE, PURPLE, RED, SKY, number, picture, ticks_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERIMENT = "strategies"
PRODUCT = ("claim", "claim+celery")
LIMITS = {"limit": "PostgreSQL alone", "redis": "Redis alone"}

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, about: str, folder: Path) -> Path:
    shown = [row for row in rows if row["executions_per_second"]]

    def bars(_: "Figure", axes: "Sequence[Axes]") -> None:
        speed, twice, crash = axes
        _speeds(speed, shown)
        names = [str(row["strategy"]) for row in shown]
        speed.set_yticks(range(len(shown)), [LIMITS.get(name, name) for name in names])
        speed.invert_yaxis()
        _duplicates(twice, shown)
        _harm(crash, shown)
        for ax in axes:
            ax.grid(visible=False, axis="y")

    height = 2.0 + 0.4 * len(shown)
    path, title = folder / "bench-strategies", _title(shown)
    return picture(path, title, about, bars, height=height, panels=(2, 0.8, 0.8), share_y=True)


def _speeds(ax: "Axes", rows: Rows) -> None:
    """Draw the speeds. A log scale has no zero, so the bars begin a little below the slowest."""
    speeds = [row["executions_per_second"] for row in rows]
    colours = [BLUE if row["strategy"] in PRODUCT else GREY if row["strategy"] in LIMITS else SKY for row in rows]
    bars = ax.barh(range(len(rows)), speeds, 0.62, color=colours)
    for bar, row in zip(bars, rows, strict=True):
        if _is_cut(row):
            bar.set(facecolor="white", edgecolor=bar.get_facecolor(), linewidth=1.5)
    ax.bar_label(bars, [number(round(speed)) for speed in speeds], padding=4, fontsize=10)
    ax.set_xscale("log")
    ax.set_xlim(min(speeds, default=1) / 3, max(speeds, default=1) * 9)
    ticks_at(ax.xaxis, [10**n for n in range(9) if 10**n <= max(speeds, default=1)])
    cut = "\nhollow: cut by the budget" if any(map(_is_cut, rows)) else ""
    ax.set_xlabel(f"executions a second, log scale{cut}")


def _duplicates(ax: "Axes", rows: Rows) -> None:
    shares = [100 * (row.get("duplicates_share") or 0) for row in rows]
    bars = ax.barh(range(len(rows)), shares, 0.62, color=ORANGE)
    texts = [_percent(row.get("duplicates_share")) for row in rows]
    ax.bar_label(bars, texts, padding=4, fontsize=10)
    ax.set_xlim(0, 175)
    ax.set_xticks([0, 50, 100])
    ax.set_xlabel("% done twice")


def _harm(ax: "Axes", rows: Rows) -> None:
    """Draw the lost executions, which are not marked, and the stranded ones, which are marked but not taken."""
    lost, stranded = ([row.get(key) or 0 for row in rows] for key in ("lost", "stranded"))
    ax.barh(range(len(rows)), lost, 0.62, color=RED, label="lost")
    bars = ax.barh(range(len(rows)), stranded, 0.62, left=lost, color=PURPLE, label="stranded")
    ax.bar_label(bars, [_harmed(row) for row in rows], padding=4, fontsize=10)
    ax.set_xlim(0, max([1, *map(sum, zip(lost, stranded, strict=True))]) * 1.75)
    ax.set_xticks([0])
    ax.set_xlabel("when a node\nis killed")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.1, 0.99), fontsize=9, handlelength=1, borderpad=0)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}" if not 0 < share < 0.01 else "< 1%"


def _harmed(row: dict[str, Any]) -> str:
    return "" if row.get("lost") is None else number(row["lost"] + (row.get("stranded") or 0))


def _is_cut(row: dict[str, Any]) -> bool:
    """Whether the budget cut the measured pass. The pass with the crash may be cut separately."""
    return "measure" in row.get("cut_passes", ["measure"] if row["cut"] else [])


def _title(rows: Rows) -> str:
    speeds = {row["strategy"]: row["executions_per_second"] for row in rows}
    others = [speed for name, speed in speeds.items() if name not in (*PRODUCT, *LIMITS)]
    nodes = max((row["nodes"] for row in rows), default=0)
    if "claim" not in speeds or not others:
        return f"Executions a second, {nodes} nodes"
    return f"With {nodes} nodes, claim is {speeds['claim'] / max(others):,.0f} times as fast as the next best"
