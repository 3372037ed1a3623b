"""Check the handlers at start. Each message has an id and a hint."""

from collections import Counter
from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from harbor_refresh.executions.news.handlers import registrations

#: The tag of our own checks, which workers, beat and our commands make at their start. Django's own checks import
#: every page of the service, and only web needs those.
OURS = "harbor_refresh"


def check_handlers(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    registered = registrations()
    names = Counter(one.name for one in registered)
    twice: list[CheckMessage] = [
        Error(
            f"The handler {name} is registered {count} times.",
            hint="Give each handler a name of its own, and one @on_execution with all of its vendors.",
            id="harbor_executions.E001",
        )
        for name, count in names.items()
        if count > 1
    ]
    return twice + [
        Error(
            f"The handler {one.name} is a coroutine function, which nothing would wait for.",
            hint="Write it as a plain function; it may call asyncio.run().",
            id="harbor_executions.E002",
        )
        for one in registered
        if iscoroutinefunction(one.function)
    ]
