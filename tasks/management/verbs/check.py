"""Look at the settings, the servers, the workers and beat, and say what is missing. Changes nothing."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.checks import bad_settings
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.examination import problems
from harbor_refresh.tasks.checks.registry import Shown, level_of, what_of

HELP = "check the settings, servers and workers for what keeps executions from ending"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    found = [*bad_settings(), *problems(Shown.PROJECT)]
    rows = [(level_of(one), str(one.id), what_of(one), str(one.hint or "")) for one in found]
    data = {"problems": [dict(zip(("level", "id", "what", "todo"), row, strict=True)) for row in rows]}
    errors = [one for one in found if one.is_serious()]
    shown = [table(("level", "id", "what is wrong", "what to do"), rows)] if found else ["Nothing is missing."]
    return Answer(data, shown, failure=f"{plural(len(errors), 'error')}." if errors else "")
