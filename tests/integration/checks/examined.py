"""What a check of the doctor finds, and what happens when a person types what it says."""

from django.core.checks import CheckMessage
from django.db import connection

from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import Shown, examine, level_of, selection, what_of

E, W = "error", "warning"
CHECKS = selection(Shown.DOCTOR)
CHECKS_OF_REDIS = [one.id for one in CHECKS if one.id.startswith(("redis.", "broker."))]


def problems(name: str, facts: Facts | None = None) -> list[CheckMessage]:
    """The problems that this check alone finds."""
    (check,) = (one for one in CHECKS if one.id == name)
    (result,) = examine([check], facts or Facts())
    return list(result.problems)


def found(name: str, facts: Facts | None = None) -> list[tuple[str, str]]:
    return [(level_of(one), what_of(one)) for one in problems(name, facts)]


def sound_checks_of_redis() -> list[str]:
    chosen = [one for one in CHECKS if one.id in CHECKS_OF_REDIS]
    return [one.check.id for one in examine(chosen, Facts()) if one.verdict == "sound"]


def typed(name: str) -> None:
    """Type the statements that each problem of this check asks for."""
    for one in problems(name):
        with connection.cursor() as cursor:
            cursor.execute(one.hint)


def reconnect() -> None:
    """Begin a session that takes over what was set for the role or the database."""
    connection.close()
