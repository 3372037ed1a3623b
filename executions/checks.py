"""Checks of the settings are system checks of Django's, each message with an id and a hint. This one is of the
handlers; tasks/checks/ has the others, and says where a new one stands. Django's commands make them. Web, workers
and beat do not, or ignore their result, so they make them at their start."""

import logging
import sys
from collections import Counter
from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any

from django.core.checks import WARNING, CheckMessage, Error, run_checks

from harbor_refresh.executions.news.handlers import registrations

log = logging.getLogger("harbor_refresh")

#: The tag of our own checks, which workers, beat and our commands make at their start. Django's own checks import
#: every page of the service, and only web needs those.
OURS = "harbor_refresh"


def bad_settings(tags: Sequence[str] | None = (OURS,), *, is_deployed: bool = False) -> list[CheckMessage]:
    """Make the checks of these tags, or all; return the errors and warnings that are not silenced."""
    found = run_checks(tags=tags, include_deployment_checks=is_deployed)
    return [one for one in found if one.level >= WARNING and not one.is_silenced()]


def exit_on_bad_settings(tags: Sequence[str] | None = (OURS,), **_: Any) -> None:
    """Say each error and warning in a line: its id, what it says and its hint. An error ends the program, and is
    printed. A warning is logged. None: make every check."""
    found = bad_settings(tags)
    is_over = any(one.is_serious() for one in found)
    for one in found:
        line = f"{one.id}: {one.msg} {one.hint or ''}".strip()
        if is_over:
            sys.stderr.write(line + "\n")
        else:
            log.warning("At the start: %s", line)
    if is_over:
        raise SystemExit(1)


def check_handlers(**_: Any) -> list[CheckMessage]:
    registered = registrations()
    twice = [
        Error(
            f"The handler {name} is registered {count} times.",
            hint="Give each handler a name of its own, and one @on_execution with all of its vendors.",
            id="harbor_executions.E001",
        )
        for name, count in Counter(one.name for one in registered).items()
        if count > 1
    ]
    coroutines = [
        Error(
            f"The handler {one.name} is a coroutine function, which nothing would await.",
            hint="Write it as a plain function; it may call asyncio.run().",
            id="harbor_executions.E002",
        )
        for one in registered
        if iscoroutinefunction(one.function)
    ]
    return [*twice, *coroutines]
