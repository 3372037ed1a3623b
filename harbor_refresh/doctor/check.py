"""A check, and the problems that it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from harbor_refresh.doctor.facts import Facts, Need


class Level(StrEnum):
    """An error stops work, loses it or delays it without end. A warning costs something at the next fault."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """What is wrong, and what to type or to change."""

    what: str
    todo: str
    level: Level = Level.ERROR


def warning(what: str, todo: str) -> Problem:
    return Problem(what, todo, Level.WARNING)


@dataclass(frozen=True)
class Check:
    """`needs`: the servers without which the check cannot be made. `answers_for`: the server whose absence this
    check finds; if it finds a problem, checks that need this server are not made."""

    name: str
    title: str
    look: Callable[[Facts], Iterable[Problem]]
    needs: tuple[Need, ...] = ()
    answers_for: Need | None = None
