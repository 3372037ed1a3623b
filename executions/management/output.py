"""The output of the commands: a table for people, JSON for programs, a bar, one line for a failure.

Owns the exit codes: 0 success, 1 `Failed`, 2 `Misused` (argparse, too, ends with 2).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TextIO, cast

from django.core.management.base import CommandError, OutputWrapper
from django.db import DatabaseError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from harbor_refresh.executions import errors
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import HELD, PASSING, absence_translated, missing_translated, sqlstate

WIDTH_OF_A_PIPE = 200


class Failed(CommandError):
    """Django writes `Failed: …` to stderr and ends the program with 1."""


class Misused(CommandError):
    def __init__(self, message: str) -> None:
        super().__init__(message, returncode=2)


@dataclass(frozen=True)
class Answer:
    """The result of a command: its data, what is shown to people, and a failure, if there was one."""

    data: dict[str, Any]
    shown: Sequence[Table | Text | str]
    failure: str = ""


def print_answer(answer: Answer, stdout: OutputWrapper, *, as_json: bool) -> None:
    if as_json:
        stdout.write(json.dumps(answer.data, indent=2, default=datetime.isoformat))
    else:
        console = Console(
            file=cast("TextIO", stdout),
            width=None if stdout.isatty() else WIDTH_OF_A_PIPE,
            markup=False,
            highlight=False,
            emoji=False,
        )
        for part in answer.shown:
            shown = printable(part) if isinstance(part, str) else part
            console.print(shown, soft_wrap=isinstance(part, str | Text))
    if answer.failure:
        raise Failed(answer.failure)


def refuse_second_run(what: str, outcome: Any) -> None:
    """Raise Failed if this run did nothing because another has the lease, or ended early because it lost it."""
    if held := outcome.held:
        raise Failed(
            f"another {what} is running, so this one did nothing. Repeat it when that has ended. "
            f"{held.holder} has the lease until {held.until.isoformat()}."
        )
    if outcome.lease_lost:
        raise Failed(f"this {what} stood still for so long that another took over, so it ended early.")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Align numbers right and other values left; escape all characters that a terminal would obey."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    content = [list(row) for row in rows]
    for index, title in enumerate(columns):
        numeric = bool(content) and all(isinstance(row[index], int) for row in content)
        made.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for row in content:
        made.add_row(*(_cell(value) for value in row))
    return made


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:,}" if isinstance(value, int) else printable("" if value is None else str(value))


@contextmanager
def bar_shown(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr for work that takes long, if that is a terminal. Call it with how much is done. The
    total may be a guess, because the bar ends with the work."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn errors of ours, and those that pass, into one line; that of an absent server says what to type."""
    try:
        with missing_translated(), absence_translated():
            yield
    except errors.RefreshError as exc:
        raise Failed(f"{str(exc).rstrip('.')}. {_advice(exc)}".strip()) from exc
    except DatabaseError as exc:
        if sqlstate(exc) not in PASSING:
            raise
        raise Failed(f"PostgreSQL: {HELD}") from exc


#: The rights that only `attach check` looks at.
RIGHTS: dict[type[Exception], str] = {
    errors.QueueRightMissing: "Give the user of REDIS_URL the rights of redis.acl, in deploy/attach.",
    errors.RightMissing: "Have the owner of the tables grant it.",
}


def _advice(error: errors.RefreshError) -> str:
    """What an absent server means, and what to type. Two errors say it themselves."""
    is_absence = isinstance(error, errors.QueueUnavailable | errors.DatabaseDown)
    if not is_absence or isinstance(error, errors.NotMigrated | errors.TableLocked):
        return ""
    if not is_attached() and type(error) in RIGHTS:
        return RIGHTS[type(error)]
    check = "attach" if is_attached() else "harbor"
    return f"{type(error).__doc__} `manage.py {check} check` says what to do."
