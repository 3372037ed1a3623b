"""A bar on stderr for a command that takes long, if that is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Show(Protocol):
    """Say how far the work is; and what is done now and of how many, if that has changed."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None, /) -> None: ...


@contextmanager
def bar_shown(what: str, total: int | None = None) -> Iterator[Show]:
    """`total`: None if it is not known; it may be a guess, because the bar ends when the work ends."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total=None, what=None, /: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)

        def show(done: int, total: int | None = None, what: str | None = None, /) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield show
