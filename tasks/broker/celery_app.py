"""Join the Celery app of a project: `connect(app)`, once, where the project makes its app.

It adds what the project lacks, and changes nothing that the project has set:

1. our Celery tasks, and the route of each, before the project's own routes, which may match every name;
2. beat's schedule, if the project has no django-celery-beat, whose rows `migrate` makes (pipeline/schedule.py);
3. kombu's transports, mended, for the connections of this app alone (tasks/broker/amqp_connection.py);
4. a step of its workers, which has them beat (tasks/jobs/live_workers.py).

The settings are read when Celery reads them, because this is called while they are being imported. A worker and a
beat tell at their start what the checks find (tasks/checks), and go on.
"""

import logging
from collections.abc import Mapping
from typing import Any

from celery import signals
from django.apps import apps
from django.core.checks import CheckMessage, Error, register

from harbor_refresh.executions.conf.startup import INSTALL, OURS, bad_settings
from harbor_refresh.tasks.broker.amqp_connection import mend_connections
from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.pipeline.schedule import ROWS, has_rows

log = logging.getLogger("harbor_refresh")


def connect(app: Any) -> Any:
    """Add the Celery tasks of Harbor Refresh, their routes and their schedule to an app, and return the app."""
    mend_connections(app)
    app.autodiscover_tasks(["harbor_refresh.tasks"], related_name="celery_tasks")
    if app.configured:
        _add_to(app, app.conf)
    else:
        app.on_after_configure.connect(_add_to, weak=False, dispatch_uid="harbor_refresh")
    register(apps_are_installed, OURS)
    for starting in (signals.celeryd_init, signals.beat_init):
        starting.connect(tell_problems, dispatch_uid="harbor_refresh.problems")
    return app


def apps_are_installed(**_: Any) -> list[CheckMessage]:
    """Find what the other checks cannot, because their app makes them."""
    if apps.is_installed("harbor_refresh.executions") and apps.is_installed("harbor_refresh.tasks"):
        return []
    return [Error("The apps of Harbor Refresh are not installed.", hint=INSTALL, id="harbor_refresh.E011")]


def add_step(sender: Any, instance: Any = None, **_: Any) -> None:
    """Add our step to each worker of this project, whichever Celery app it has: without it no job begins. A
    worker in the process of a test sends `import_modules` alone, whose sender is the app."""
    app = instance.app if instance else sender
    app.steps["consumer"].add("harbor_refresh.tasks.jobs.live_workers:WorkerStep")  # which needs Django's apps


def _add_to(sender: Any, source: Any, **_: Any) -> None:
    """Add our routes and schedule to the settings of an app."""
    _write(source, "task_routes", with_ours(source.task_routes))
    if not has_rows():
        schedule = {row.name: {"task": row.task, "schedule": row.seconds} for row in ROWS}
        _write(source, "beat_schedule", schedule | dict(source.beat_schedule or {}))


def _write(conf: Any, name: str, value: Any) -> None:
    """Set a value of Celery. Celery 5.6 reads the name with the project's prefix first (CELERY_BEAT_SCHEDULE). For
    Celery 5.7 that name is not written, because it would hide what the project assigns to `app.conf` later."""
    conf[name] = value
    if conf[name] is not value:
        prefixed = f"{conf.prefix}{name}"
        conf[prefixed.upper() if conf.prefix.isupper() else prefixed.lower()] = value


def with_ours(routes: Any) -> list[Any]:
    """These routes with ours before them. A route of the project that names a task of ours stays."""
    theirs = list(routes) if isinstance(routes, list | tuple) else [routes] if routes else []
    named = {name for one in theirs if isinstance(one, Mapping) for name in one}
    return [{name: route for name, route in ROUTES.items() if name not in named}, *theirs]


def tell_problems(**_: Any) -> None:
    for message in bad_settings():
        log.log(message.level, "%s: %s %s", message.id, message.msg, message.hint or "")
