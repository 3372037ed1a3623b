"""What a check of the doctor finds, and what happens when a person types what it says."""

from django.db import connection

from harbor_refresh.doctor.check import Level, Problem
from harbor_refresh.doctor.examination import CHECKS, examine
from harbor_refresh.doctor.facts import Facts

E, W = Level.ERROR, Level.WARNING


def problems(name: str, facts: Facts | None = None) -> list[Problem]:
    """The problems that this check alone finds."""
    (check,) = (one for one in CHECKS if one.name == name)
    (result,) = examine([check], facts)
    return list(result.problems)


def found(name: str, facts: Facts | None = None) -> list[tuple[Level, str]]:
    return [(one.level, one.what) for one in problems(name, facts)]


def typed(name: str) -> None:
    """Type the statements that each problem of this check asks for."""
    for one in problems(name):
        with connection.cursor() as cursor:
            cursor.execute(one.todo)


def reconnect() -> None:
    """Begin a session that takes over what was set for the role or the database."""
    connection.close()
