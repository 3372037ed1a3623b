"""Look at the settings, the servers, the workers and beat, and say what is missing. Changes nothing."""

from typing import Any

from django.core.checks import WARNING, run_checks
from django.core.management.base import CommandParser

from harbor_refresh.executions.checks import OURS
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.live_checks import Found, live_checks

HELP = "say what is missing for executions to end: in the settings, the servers, the workers"


def arguments(parser: CommandParser) -> None:
    pass


def answer(options: dict[str, Any]) -> Answer:
    told = [one for one in run_checks(tags=[OURS]) if one.level >= WARNING and not one.is_silenced()]
    found = [*(Found(str(one.id), str(one.msg), str(one.hint or "")) for one in told), *live_checks()]
    data = {"problems": [{"id": one.id, "what": one.what, "todo": one.todo} for one in found]}
    if not found:
        return Answer(data, ["Nothing is missing."])
    errors = [one for one in found if one.is_error or one.id.startswith("harbor_tasks.E")]
    shown = [table(("id", "what is wrong", "what to do"), [(one.id, one.what, one.todo) for one in found])]
    return Answer(data, shown, failure=f"{plural(len(errors), 'error')}." if errors else "")
