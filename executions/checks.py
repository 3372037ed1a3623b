"""Checks of the settings are system checks of Django's, each message with an id and a hint. This one is of the
handlers; tasks/checks/ has the others, and says where a new one stands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import iscoroutinefunction
from typing import Any

from django.core.checks import WARNING, CheckMessage, Error, run_checks

from harbor_refresh.executions.news.handlers import registrations

#: The tag of our own checks, which workers, beat and our commands make at their start. Django's own checks import
#: every page of the service, and only web needs those.
OURS = "harbor_refresh"


def bad_settings(tags: Sequence[str] | None = (OURS,), *, is_deployed: bool = False) -> list[CheckMessage]:
    """Make the checks of these tags, or all; return the errors and warnings that are not silenced."""
    found = run_checks(tags=tags, include_deployment_checks=is_deployed)
    return [one for one in found if one.level >= WARNING and not one.is_silenced()]


def check_handlers(**_: Any) -> list[CheckMessage]:
    return [*_handlers()]


def _handlers() -> Iterator[CheckMessage]:
    registered = registrations()
    for name, count in Counter(one.name for one in registered).items():
        if count > 1:
            yield Error(
                f"The handler {name} is registered {count} times.",
                hint="Give each handler a name of its own, and one @on_execution with all of its vendors.",
                id="harbor_executions.E001",
            )
    for one in registered:
        if iscoroutinefunction(one.function):
            yield Error(
                f"The handler {one.name} is a coroutine function, which nothing would await.",
                hint="Write it as a plain function; it may call asyncio.run().",
                id="harbor_executions.E002",
            )
