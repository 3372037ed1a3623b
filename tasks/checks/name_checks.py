"""Check that no other Celery task has the name of one of ours.

Of two Celery tasks with one name Celery keeps the first and drops the other without a word. A project whose module
`tasks` has a function `sweep` names it `tasks.sweep`, as ours is named.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from celery import Task, current_app
from celery.local import Proxy
from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from harbor_refresh.tasks.celery_queues import ROUTES

PACKAGE = "harbor_refresh.tasks"


def check_names(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    return [
        Error(
            f"{module}.{name.rpartition('.')[2]} is a Celery task with the name {name}, which is one of ours.",
            hint="Give it another name: @shared_task(name=…).",
            id="harbor_tasks.E030",
        )
        for name in sorted(ROUTES)
        for module in sorted({*_registered(name), *_dropped(name)})
    ]


def _registered(name: str) -> Iterator[str]:
    """Find the module of the Celery task that has the name, if that is not ours."""
    task = current_app.tasks.get(name)
    module = type(task).__module__
    if task is not None and not module.startswith(f"{PACKAGE}."):
        yield module


def _dropped(name: str) -> Iterator[str]:
    """Look at the module `tasks` of a project: Celery has dropped its task if it knew ours before."""
    module, _, function = name.partition(".")
    if isinstance(getattr(sys.modules.get(module), function, None), Proxy | Task):
        yield module
