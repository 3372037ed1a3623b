"""The output of the commands: a table for people, JSON for programs, one line for a failure.

Owns the exit codes: 0 success, 1 `Failed`, 2 `Misused` (argparse, too, ends with 2).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO, cast

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.database import absence_translated
from harbor_refresh.executions.declarations import is_service
from harbor_refresh.executions.errors import (
    DatabaseAway,
    DatabaseRefused,
    PoolerRefused,
    QueueRefused,
    QueueRightMissing,
    QueueUnavailable,
    RefreshError,
    RightMissing,
)

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
        stdout.write(json.dumps(answer.data, indent=2))
    else:
        console = Console(
            file=cast("TextIO", stdout),
            width=None if stdout.isatty() else WIDTH_OF_A_PIPE,
            markup=False,
            highlight=False,
            emoji=False,
        )
        for part in answer.shown:
            console.print(part, soft_wrap=isinstance(part, str | Text))
    if answer.failure:
        raise Failed(answer.failure)


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
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".") + "."


def _which_database() -> str:
    """Say what to correct: without the variable, the default address was tried."""
    if not is_service():
        return "Correct the account, the password and the name in DATABASES, in the settings,"
    if settings.DATABASE_IS_NAMED:
        return "Correct the account, the password and the name in DATABASE_URL,"
    return "DATABASE_URL is not set, so the default was tried. Set it, or run `make up` in this directory,"


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn every error of ours into one line. For an absent server it says what happened and what to do."""
    try:
        with absence_translated():
            yield
    except QueueRightMissing as exc:
        told = "`manage.py attach check` names each right that is missing"
        if not is_attached():
            told = "The files redis.acl and broker.acl of deploy/attach have all rights that are needed"
        raise Failed(
            f"{_sentence(exc)} Redis answers, and refuses this program: its user may not use that command, or not "
            f"on that key. {told}; then repeat this command."
        ) from exc
    except QueueRefused as exc:
        raise Failed(
            f"{_sentence(exc)} Redis answers, and refuses this program. "
            "Correct the user name and the password in REDIS_URL, then repeat this command."
        ) from exc
    except QueueUnavailable as exc:
        raise Failed(
            f"{_sentence(exc)} Redis is away; nothing is lost, reconcile finds what was not "
            "marked. Look at REDIS_URL and `redis-cli ping`, then repeat this command."
        ) from exc
    except PoolerRefused as exc:
        raise Failed(
            f"{_sentence(exc)} A PgBouncer stands before the database, and refuses the options of the connection. "
            "Set DATABASE_POOLED=true; `manage.py doctor` then says what else to type."
        ) from exc
    except RightMissing as exc:
        which = "attach check" if is_attached() else "doctor"
        raise Failed(
            f"{_sentence(exc)} The role of DATABASE_URL lacks a right. `manage.py {which}` names each, with the "
            "statement that grants it; then repeat this command."
        ) from exc
    except DatabaseRefused as exc:
        raise Failed(
            f"{_sentence(exc)} The database answers, and refuses this program. {_which_database()} "
            "then repeat this command."
        ) from exc
    except DatabaseAway as exc:
        raise Failed(
            f"{_sentence(exc)} The database is away. "
            "Look at DATABASE_URL and `pg_isready`, then repeat this command."
        ) from exc
    except RefreshError as exc:
        raise Failed(_sentence(exc)) from exc
