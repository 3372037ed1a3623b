"""All text that the terminal shows while `make up` runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.table import Table


class Screen:
    """Writes for a person at a terminal, or to a log file if there is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = 120  # a file has no width; addresses must not wrap

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """Show a start-up step while it runs, then as done; show no end if it fails."""
        if self._console.is_terminal:
            with self._console.status(escape(doing)):
                yield
        else:
            yield
        self._console.print(f"[green]done[/]  {escape(doing)}")

    def note(self, text: str) -> None:
        self._console.print(f"[yellow]note[/]  {escape(text)}")

    def error(self, text: str) -> None:
        self._console.print(f"[red]error[/] {escape(text)}", soft_wrap=True)

    def say(self, text: str) -> None:
        self._console.print(escape(text))

    def addresses(self, rows: list[tuple[str, str]]) -> None:
        table = Table(title="Harbor Refresh is up", title_justify="left", show_header=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, address in rows:
            table.add_row(name, escape(address))
        self._console.print(table)
        self._console.print("Ctrl-C ends everything; the data stay for the next time.")
