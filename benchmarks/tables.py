"""Measured rows as Markdown tables, for the pages in docs/."""

from collections.abc import Sequence
from typing import Any

from benchmarks.experiments import EXPERIMENTS, experiment
from benchmarks.screen import cell

Rows = Sequence[dict[str, Any]]


def markdown(name: str, rows: Rows, about: str) -> str:
    """Return a heading, the table with the columns of the experiment, and the machine, versions and date."""
    columns = experiment(name).COLUMNS if name in EXPERIMENTS else [(key, key) for key in _plain_keys(rows)]
    titles = [title.replace("|", "\\|") for _, title in columns]
    numeric = [any(isinstance(row.get(key), int | float) for row in rows) for key, _ in columns]
    lines = [
        f"### {name}",
        "",
        _line(titles),
        _line("--:" if right else "---" for right in numeric),
        *(_line(cell(row.get(key)).replace("|", "\\|") for key, _ in columns) for row in rows),
    ]
    return "\n".join([*lines, "", f"*{about}*", ""] if about else [*lines, ""])


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _plain_keys(rows: Rows) -> list[str]:
    return [key for key, value in rows[0].items() if key != "experiment" and not isinstance(value, dict)]
