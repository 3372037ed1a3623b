"""Make every check, in order."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection

from harbor_refresh.doctor import (
    clocks,
    postgres,
    program,
    redis_servers,
    schedule,
    statuses,
    tables,
    workers,
)
from harbor_refresh.doctor.check import Check, Level, Problem
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.executions.database import first_line

#: The servers come first, because other checks need them.
CHECKS: tuple[Check, ...] = (
    *program.CHECKS,
    *postgres.CHECKS,
    *tables.CHECKS,
    *redis_servers.CHECKS,
    *clocks.CHECKS,
    *schedule.CHECKS,
    *workers.CHECKS,
    *statuses.CHECKS,
)


@dataclass(frozen=True)
class Result:
    """`not_made`: the server that the check needs and that is away; then there are no problems."""

    check: Check
    problems: tuple[Problem, ...] = ()
    not_made: Need | None = None
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.not_made:
            return "not made"
        levels = {problem.level for problem in self.problems}
        return Level.ERROR if Level.ERROR in levels else Level.WARNING if levels else "sound"


def examine(checks: Sequence[Check] = CHECKS, facts: Facts | None = None) -> Iterator[Result]:
    """Yield each result as soon as it is known.

    What if a check itself raises: that is a problem of this check, and the next check is made.
    """
    facts = facts or Facts()
    away: set[Need] = set()
    for check in checks:
        if missing := next((need for need in check.needs if need in away), None):
            yield Result(check, not_made=missing)
            continue
        began = time.monotonic()
        problems = tuple(_problems(check, facts))
        if problems and check.answers_for:
            away.add(check.answers_for)
        yield Result(check, problems, seconds=time.monotonic() - began)


def _problems(check: Check, facts: Facts) -> Iterator[Problem]:
    try:
        yield from check.look(facts)
    except Exception as exc:  # the other checks may name the cause
        connection.close()
        yield Problem(
            f"This could not be looked at. {type(exc).__name__}: {first_line(exc) if str(exc) else ''}".rstrip(),
            f"manage.py doctor --only {check.name}; if it fails again, report it",
        )
