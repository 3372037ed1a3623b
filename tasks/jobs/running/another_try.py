"""Another try of a job: its arguments, its delay and the options that it asks for."""

import inspect
from datetime import UTC, datetime
from typing import Any

from harbor_refresh.tasks.jobs.starting.options import OPTIONS, moment_of
from harbor_refresh.tasks.jobs.starting.records import destination, options_of


def merged(run: Any, request: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of another try. Those that are not given stay, except where those that are given take
    their place, as in Celery, which would take the handle for the first of them."""
    if (args is None) == (kwargs is None):
        return args, kwargs
    parameters = list(inspect.signature(run).parameters.values())[1:]
    named = [one.name if one.kind is one.POSITIONAL_OR_KEYWORD else None for one in parameters]
    if args is not None:
        placed = {*named[: len(args)]}
        return args, {name: value for name, value in (request.kwargs or {}).items() if name not in placed}
    args, kwargs = list(request.args or ()), dict(kwargs)
    for place, name in enumerate(named[: len(args)]):
        if name in kwargs:
            args[place] = kwargs.pop(name)
    return args, kwargs


def delay_of(options: dict[str, Any]) -> float:
    """Return the delay in seconds of a message with these options."""
    if eta := options.get("eta"):
        return max(0.0, (moment_of(eta) - datetime.now(UTC)).total_seconds())
    return float(options.get("countdown") or 0)


def asked_of_row(name: str, options: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the options of another try that the row of its job keeps, and its queue if that is another one."""
    given = {one: value for one, value in options.items() if one in OPTIONS and value is not None}
    asked = {
        one: value.isoformat() if isinstance(value, datetime) else value
        for one, value in options_of(given).items()
    }
    return asked, destination(name, asked).queue if asked.keys() & {"queue", "routing_key"} else None
