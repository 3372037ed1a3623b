"""Checks of the Celery app and its tasks, of the service and of projects. docs/reference/checks.md lists
them."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from celery import Task, current_app
from celery.local import Proxy
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import autodiscover_modules

from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.jobs.running.tracked import TrackedJob
from harbor_refresh.tasks.pipeline.schedule import ROWS, has_rows
from harbor_refresh.tasks.without_redis import mode

PACKAGE = "harbor_refresh.tasks"
#: Of the schedulers that read the rows of django-celery-beat, what their names have in them.
OF_ROWS = ("PatientScheduler", "DatabaseScheduler")
CONNECT = (
    "Add `harbor_refresh.connect(app)` where the project makes its Celery app, and import that module in the "
    "project's __init__.py. If both are there, a later line replaces the routes or the schedule of the app: let "
    "it add to them."
)


def check_celery(**_: Any) -> list[CheckMessage]:
    """Eager mode has no broker, no worker and no beat."""
    checks = (_names,) if mode.is_eager() else (_names, _beat, _workers)
    return [problem for check in checks for problem in check()]


def _names() -> Iterator[CheckMessage]:
    """Of two Celery tasks with one name Celery drops the second without a word. A project whose module `tasks` has
    a function `sweep` names it `tasks.sweep`, as ours is named."""
    for name in sorted(ROUTES):
        task = current_app.tasks.get(name)
        is_ours = task is None or type(task).__module__.startswith(f"{PACKAGE}.")
        theirs = set() if is_ours else {type(task).__module__}
        module, _, function = name.partition(".")
        # in a project's module `tasks`, Celery has dropped its task if it knew ours before
        if isinstance(getattr(sys.modules.get(module), function, None), Proxy | Task):
            theirs.add(module)
        for one in sorted(theirs):
            yield Error(
                f"{one}.{name.rpartition('.')[2]} is a Celery task with the name {name}, which is one of ours.",
                hint="Give it another name: @shared_task(name=…).",
                id="harbor_tasks.E030",
            )


def jobs() -> dict[str, TrackedJob]:
    """The jobs of the project, by their names. A worker and beat import what their app names; to import more there
    would hide a missing `autodiscover_tasks()`."""
    if not current_app.loader.worker_initialized:
        with suppress(Exception):  # a module that cannot be imported is told by the worker that needs it
            autodiscover_modules("tasks")
    return {name: task for name, task in sorted(current_app.tasks.items()) if isinstance(task, TrackedJob)}


def _beat() -> Iterator[CheckMessage]:
    scheduler = str(current_app.conf.beat_scheduler)
    if has_rows():
        if not any(word in scheduler for word in OF_ROWS):
            yield Warning(
                f"Our schedule is in the rows of django-celery-beat, but the scheduler of beat is {scheduler}.",
                hint="Set beat_scheduler to django_celery_beat.schedulers:DatabaseScheduler.",
                id="harbor_refresh.W002",
            )
        return
    if "django_celery_beat" in scheduler:
        yield Error(
            f"The scheduler of beat is {scheduler}, and its app is not installed, so beat does not start.",
            hint='Add "django_celery_beat" to INSTALLED_APPS and migrate, or remove beat_scheduler.',
            id="harbor_refresh.E010",
        )
    planned = {str(entry.get("task")) for entry in dict(current_app.conf.beat_schedule or {}).values()}
    if missing := [row.task for row in ROWS if row.task not in planned]:
        yield Warning(
            f"Beat does not send {missing[0]}: the work of a killed worker waits until another worker starts.",
            hint=CONNECT,
            id="harbor_refresh.W003",
        )


def _workers() -> Iterator[CheckMessage]:
    conf = current_app.conf
    if conf.worker_prefetch_multiplier != 1:
        yield Warning(
            f"worker_prefetch_multiplier is {conf.worker_prefetch_multiplier}: a busy worker holds back jobs and "
            "refreshes that another could run.",
            hint="Set it to 1.",
            id="harbor_refresh.W004",
        )
    if not settings.USE_TZ or not conf.enable_utc:
        yield Warning(
            "USE_TZ or enable_utc is off: beat floods the workers, or stops, when the clocks change.",
            hint="In the settings: USE_TZ = True, and no CELERY_ENABLE_UTC",
            id="harbor_refresh.W007",
        )
