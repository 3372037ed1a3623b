"""The progress of a command whose end is not known, on stderr, if that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def looked_at_shown() -> Iterator[Callable[[int], None]]:
    """Yield a function that takes how many rows were looked at so far."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda looked_at: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} looked at"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looked at", total=None)
        yield lambda looked_at: bar.update(task, completed=looked_at)
