"""What all pictures share: size, colours, scales, the line with machine and date, and how they are saved.

Only pictures need matplotlib, so it is imported when one is drawn. The colours are those of Okabe and Ito, which
colour-blind people can tell apart; lines differ in their markers as well. The background is always white.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8a8a8a",
)
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, "#222222")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

INK, FAINT = "#222222", "#5c5c5c"
WIDTH = 7.2  # inches; 700 pixels wide on a page, a letter of 10.5 points is 14 pixels high
LARGEST_SVG = 100_000
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.labelsize": 10.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 7,
    "svg.hashsalt": "harbor refresh",  # the same rows make the same file
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


class NoMatplotlib(Exception):
    """matplotlib is not installed. Pictures need it: pip install -r requirements-dev.txt"""


Draw = Callable[["Figure", Sequence["Axes"]], None]


def picture(
    path: Path,
    title: str,
    about: str,
    draw: Draw,
    *,
    height: float = 4.2,
    panels: Sequence[float] = (1,),
    share_y: bool = False,
) -> Path:
    """Draw with `draw` on panels of these widths and save it; the suffix is chosen by size.

    Returns the path: an SVG, or a PNG if the SVG would be larger than LARGEST_SVG.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise NoMatplotlib(NoMatplotlib.__doc__) from exc
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        figure.get_layout_engine().set(rect=(0, 0.055, 1, 0.945))  # type: ignore[union-attr, call-arg]
        axes = figure.subplots(1, len(panels), width_ratios=list(panels), sharey=share_y, squeeze=False)[0]
        draw(figure, list(axes))
        figure.suptitle(title, x=0.012, ha="left", fontsize=12.5, fontweight="bold")
        figure.text(0.012, 0.012, about, fontsize=8, color=FAINT)
        return _save(figure, path)


def _save(figure: "Figure", path: Path) -> Path:
    """Save the picture, and remove an older one with the other suffix, so that no page shows it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    svg, png = path.with_suffix(".svg"), path.with_suffix(".png")
    figure.savefig(svg, metadata={"Date": None})
    if svg.stat().st_size <= LARGEST_SVG:
        png.unlink(missing_ok=True)
        return svg
    svg.unlink()
    figure.savefig(png, dpi=160)
    return png


def number(value: float) -> str:
    """Format without an exponent: 1,200,000 or 0.25, never 1.2e6."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    return f"{number(value)} s" if value >= 1 else f"{number(value * 1000)} ms"


def plain_ticks(axis: Any, text: Callable[[float], str] = number) -> None:
    """Label the major ticks without exponents, and the minor ticks not at all."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())


def ticks_at(axis: Any, values: Sequence[float], text: Callable[[float], str] = number) -> None:
    """Put ticks only where there is a measurement."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    plain_ticks(axis, text)
