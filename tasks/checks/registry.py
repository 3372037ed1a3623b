"""The registry of the checks that ask servers, and making them in order.

A check looks at Facts, changes nothing, and yields Django's `Error` (work stops, is lost or delayed without end)
or `Warning`. `msg` says what is wrong and, on a second line, what that means; `hint` says what to type. A check of
a server that is down is not made, so that one cause gives one problem.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.core.checks import CheckMessage, Error
from django.db import connection

from harbor_refresh.executions.conf.declarations import is_service
from harbor_refresh.executions.database import first_line


class Server(StrEnum):
    """A server that must answer before a check can look at it."""

    DATABASE = "PostgreSQL"
    REDIS = "Redis"
    BROKER = "the broker"


class Shown(StrEnum):
    """The commands and pages that show checks."""

    DOCTOR = "manage.py doctor"
    PROJECT = "manage.py harbor check"
    ATTACH = "manage.py attach check"
    DASHBOARD = "the dashboard"


COMMANDS = (Shown.DOCTOR, Shown.PROJECT)
PRESENT = (*COMMANDS, Shown.DASHBOARD)
Look = Callable[[Any], Iterable[CheckMessage]]
#: In this order.
GROUPS = ("settings", "database", "tables", "redis", "broker", "beat", "workers", "status", "attach")


@dataclass(frozen=True)
class Check:
    """`title`: what a sound system has. `needs`: the servers without which the check cannot be made.
    `answers_for`: the server whose absence this check finds; then checks that need this server are not made."""

    id: str
    title: str
    look: Look
    needs: tuple[Server, ...]
    shown: frozenset[Shown]
    answers_for: Server | None

    @property
    def place(self) -> tuple[bool, int]:
        """The servers come first, because other checks need them."""
        return self.answers_for is None, GROUPS.index(self.id.partition(".")[0])


#: Those of attach are among them once its command is imported.
REGISTERED: dict[str, Check] = {}


def check(
    name: str,
    title: str,
    *needs: Server,
    shown: Collection[Shown] = (Shown.DOCTOR,),
    answers_for: Server | None = None,
) -> Callable[[Look], Look]:
    """Register the decorated function under this id."""

    def register(look: Look) -> Look:
        REGISTERED[name] = Check(name, title, look, needs, frozenset(shown), answers_for)
        return look

    return register


@dataclass(frozen=True)
class Result:
    """`not_made`: the server that the check needs and that is down; then there are no problems."""

    check: Check
    problems: tuple[CheckMessage, ...] = ()
    not_made: Server | None = None

    @property
    def verdict(self) -> str:
        if self.not_made:
            return "not made"
        return min((level_of(one) for one in self.problems), default="sound")  # an error before a warning


def level_of(problem: CheckMessage) -> str:
    return "error" if problem.is_serious() else "warning"


def told(problem: CheckMessage) -> dict[str, str]:
    """The parts of a problem, for pages and for programs."""
    what, _, meaning = str(problem.msg).partition("\n")
    return {
        "id": str(problem.id),
        "level": level_of(problem),
        "what": what,
        "meaning": meaning,
        "todo": str(problem.hint or ""),
    }


def what_of(problem: CheckMessage) -> str:
    """What is wrong and what it means, on one line."""
    return " ".join(str(problem.msg).split())


def examine(checks: Sequence[Check], facts: Any) -> Iterator[Result]:
    """Yield each result as soon as it is known. If a check itself raises, that is a problem of this check."""
    down: set[Server] = set()
    for one in checks:
        if missing := next((need for need in one.needs if need in down), None):
            yield Result(one, not_made=missing)
            continue
        found = tuple(_problems(one, facts))
        if found and one.answers_for:  # silenced or not: checks that need the server would find nothing else
            down.add(one.answers_for)
        shown = tuple(problem for problem in found if not problem.is_silenced())
        yield Result(one, shown)


def selection(shown: Shown) -> list[Check]:
    """Return the checks that this command or page shows, in order."""
    return sorted((one for one in REGISTERED.values() if shown in one.shown), key=lambda one: one.place)


def problems(shown: Shown, facts: Any) -> list[CheckMessage]:
    """Return what the checks of this command or page find, errors first."""
    found = [problem for result in examine(selection(shown), facts) for problem in result.problems]
    return sorted(found, key=lambda one: not one.is_serious())


def what_is_wrong(facts: Any, *checks: str) -> str:
    """Return what these checks find, without what it means; an empty text if nothing is wrong."""
    results = examine([REGISTERED[name] for name in checks], facts)
    return " ".join(told(problem)["what"] for result in results for problem in result.problems)


def _problems(made: Check, facts: Any) -> Iterator[CheckMessage]:
    try:
        for problem in made.look(facts):
            problem.id = made.id
            yield problem
    except Exception as exc:  # the other checks may name the cause
        connection.close()
        yield Error(
            f"This could not be looked at. {type(exc).__name__}: {first_line(exc) if str(exc) else ''}".rstrip(),
            hint=f"manage.py doctor --only {made.id}; if it fails again, report it"
            if Shown.DOCTOR in made.shown and is_service()
            else "Type the command again; if it fails again, report it",
            id=made.id,
        )
