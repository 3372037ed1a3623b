"""The output of a run: progress on standard error, and the rows on standard output at the end.

On a terminal each stage is a progress bar; elsewhere it is one plain line.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.rows import Row, RowFile
from harbor_refresh.executions.management.output import WIDTH_OF_A_PIPE

Column = tuple[str, str]
Show = Callable[[int], None]

STDOUT = "-"


class Screen:
    """`about` is added to every row. `json` is the file for the rows as JSON; `-` means standard output."""

    def __init__(self, experiment: str, about: dict[str, Any], json: str | None) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._experiment = experiment
        self._about = about
        self._to_stdout = json == STDOUT
        self._file = RowFile(Path(json) if json and not self._to_stdout else None)

    def say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)

    @contextmanager
    def stage(self, text: str, total: int) -> Iterator[Show]:
        """Show a stage of `total` steps. Call the yielded function with the number of steps that are done."""
        if not self._console.is_terminal:
            self.say(text)
            yield lambda done: None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(f"{text:<32}", total=total)
            yield lambda done: progress.update(task, completed=min(done, total))

    def keep(self, row: Row) -> None:
        """Keep a finished row, and write it to the file at once."""
        row.experiment = row.experiment or self._experiment
        self._file.add(row.as_json() | {"about": self._about})

    def end(self, columns: Sequence[Column]) -> None:
        """Print the table, or the JSON instead."""
        if self._to_stdout:
            sys.stdout.write(self._file.text())
            return
        width = None if sys.stdout.isatty() else WIDTH_OF_A_PIPE
        Console(width=width, markup=False, highlight=False).print(table(columns, self._file.rows))


def table(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for index, (_, title) in enumerate(columns):
        made.add_column(title, justify="right" if index else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell(row.get(key)) for key, _ in columns))
    return made


def cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else ""
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if value >= 1_000 else f"{value:,.3g}"
        case _:
            return str(value)
