"""Check a project in which our apps are guests: what they need of its Celery app, and nothing of a server.

`manage.py check` makes these checks, and so does each worker and beat at its start. What needs a server is asked
by `manage.py harbor check` (tasks/checks/live_checks.py): a check of Django's runs in every build, in which no
server runs, and before the first `migrate`.

docs/jobs.md has a table of the ids.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from celery import current_app
from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import autodiscover_modules

from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.executions.declarations import is_service, of_project
from harbor_refresh.executions.given_settings import problems
from harbor_refresh.tasks.celery_queues import ROUTES
from harbor_refresh.tasks.checks import package_checks
from harbor_refresh.tasks.conf import ADDRESS, DECLARED, LOCAL, refresh_settings
from harbor_refresh.tasks.jobs.tracked import TrackedJob
from harbor_refresh.tasks.redis_address import read_address
from harbor_refresh.tasks.schedule import ROWS, has_rows
from harbor_refresh.tasks.without_redis import mode

CONNECT = (
    "Add `harbor_refresh.connect(app)` where the project makes its Celery app, and import that module in the "
    "project's __init__.py. If both are there, a later line replaces the routes or the schedule of the app: let "
    "it add to them."
)
BROKERS = ("redis", "rediss", "sentinel", "amqp", "amqps", "pyamqp", "memory")
#: The longest wait for the messages that a killed worker had fetched. Celery's default is 3,600.
LONGEST_VISIBILITY = 600
#: Of the schedulers that read the rows of django-celery-beat, what their names have in them.
OF_ROWS = ("PatientScheduler", "DatabaseScheduler")


def check_host(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    if is_service():
        return []
    known = {one.key: one for one in (*OF_EXECUTIONS.values(), *DECLARED.values()) if not one.of_service}
    found = problems(known, ADDRESS)
    for check in OF_EAGER_MODE if mode.is_eager() else CHECKS:
        found += check()
    return found


def _broker() -> Iterator[CheckMessage]:
    scheme = str(current_app.conf.broker_url or "amqp:").partition(":")[0]
    if scheme not in BROKERS:
        yield Error(
            f"The broker of Celery is {scheme}; ours are Redis and RabbitMQ.",
            hint="Set the broker of the project's Celery app to one of them.",
            id="harbor_refresh.E005",
        )


def _queue() -> Iterator[CheckMessage]:
    address = refresh_settings().redis_url
    try:
        read_address(address)
    except ValueError as exc:
        yield Error(
            f"The address of the queue's Redis has {exc}.",
            hint="Set REDIS_URL in HARBOR_REFRESH, for example redis://localhost:6379/0.",
            id="harbor_refresh.E006",
        )
    if address == LOCAL and ADDRESS not in of_project() and current_app.conf.broker_url != LOCAL:
        yield Warning(
            "The broker is no Redis, so the queue is looked for in a Redis on this machine.",
            hint="Set REDIS_URL in HARBOR_REFRESH.",
            id="harbor_refresh.W001",
        )


def _routes() -> Iterator[CheckMessage]:
    router = current_app.amqp.router
    queues = {name: _queue_of(router, name) for name in ROUTES}
    lost = [name for name, route in ROUTES.items() if queues[name] != route["queue"]]
    if lost:
        first = lost[0]
        yield Error(
            f"{first} goes to the queue {queues[first]}, not to {ROUTES[first]['queue']}, so no execution ends.",
            hint=CONNECT,
            id="harbor_refresh.E007",
        )


def _queue_of(router: Any, name: str) -> str:
    queue = router.route({}, name).get("queue")
    return str(getattr(queue, "name", queue))


def _beat() -> Iterator[CheckMessage]:
    scheduler = str(current_app.conf.beat_scheduler)
    if has_rows():
        if not any(word in scheduler for word in OF_ROWS):
            yield Warning(
                f"Our schedule is in the rows of django-celery-beat, and the scheduler of beat is {scheduler}.",
                hint="Set beat_scheduler to django_celery_beat.schedulers:DatabaseScheduler.",
                id="harbor_refresh.W002",
            )
        return
    planned = {str(entry.get("task")) for entry in dict(current_app.conf.beat_schedule or {}).values()}
    missing = [row.task for row in ROWS if row.task not in planned]
    if missing:
        yield Warning(
            f"Beat does not send {missing[0]}: what a killed worker had begun waits until a worker starts.",
            hint=CONNECT,
            id="harbor_refresh.W002",
        )


def jobs() -> dict[str, TrackedJob]:
    """The jobs of the project, by their names.

    A worker and beat import what their app names. To import more here would hide what it does not name, such as a
    missing `autodiscover_tasks()`.
    """
    if not current_app.loader.worker_initialized:
        with suppress(Exception):  # a module that cannot be imported is told by the worker that needs it
            autodiscover_modules("tasks")
    return {name: task for name, task in sorted(current_app.tasks.items()) if isinstance(task, TrackedJob)}


def _jobs() -> Iterator[CheckMessage]:
    for name, task in jobs().items():
        if not task.acks_late or not task.reject_on_worker_lost:
            yield Error(
                f"The job {name} has acks_late or reject_on_worker_lost off: a killed worker loses its message.",
                hint="Leave out both options: the base class has them.",
                id="harbor_refresh.E008",
            )
        if getattr(task, "retry_on_worker_lost", False):
            yield Warning(
                f"The job {name} has retry_on_worker_lost, so a few deaths of its process drop its message.",
                hint="Set retry_on_worker_lost=False on the job, or leave task_retry_on_worker_lost off.",
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
    if conf.worker_max_tasks_per_child == 1:
        yield Warning(
            "worker_max_tasks_per_child is 1: the worker of the refreshes starts a process for each of them, "
            "which takes many times as long as a refresh.",
            hint="Start that worker with --max-tasks-per-child 1000000, and silence this warning.",
            id="harbor_refresh.W005",
        )
    waits = float((conf.broker_transport_options or {}).get("visibility_timeout", 3600))
    if str(conf.broker_url).startswith(("redis", "sentinel")) and waits > LONGEST_VISIBILITY:
        yield Warning(
            f"Messages that a killed worker had fetched come again after {waits:g} s, the visibility timeout.",
            hint="Set visibility_timeout in broker_transport_options to 300, or a little above the longest task.",
            id="harbor_refresh.W006",
        )


CHECKS = (package_checks.versions, package_checks.driver, _broker, _queue, _routes, _beat, _jobs, _workers)
#: It has no broker, no queue, no worker and no beat.
OF_EAGER_MODE = (package_checks.versions, package_checks.driver, _jobs)
