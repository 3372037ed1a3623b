"""Checks of the settings, and of Celery's options."""

from collections.abc import Iterator
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import WARNING, run_checks

from harbor_refresh.doctor import rabbitmq
from harbor_refresh.doctor.check import Check, Level, Problem, warning
from harbor_refresh.doctor.facts import Facts
from harbor_refresh.redis_transport import Transport
from harbor_refresh.tasks.celery_queues import ROUTES
from harbor_refresh.tasks.overview import of_broker

#: A message must not come again while the longest chunk of a refresh is under way.
SHORTEST_VISIBILITY = 30


def system_checks(facts: Facts) -> Iterator[Problem]:
    """Django's and our own checks of the settings; those for production unless DEBUG is on."""
    for message in run_checks(include_deployment_checks=not settings.DEBUG):
        if message.level >= WARNING and not message.is_silenced():
            level = Level.ERROR if message.is_serious() else Level.WARNING
            text, hint = (" ".join(str(one or "").split()) for one in (message.msg, message.hint))
            yield Problem(f"{message.id}: {text}", hint or "manage.py check --deploy", level)


def late_acknowledgement(facts: Facts) -> Iterator[Problem]:
    conf = current_app.conf
    names = {
        "task_acks_late": "a worker that is killed loses the subtasks that it had taken",
        "task_reject_on_worker_lost": "a pool process that is killed loses its subtask",
    }
    for name, cost in names.items():
        if not conf[name]:
            yield Problem(f"Celery's {name} is off: {cost}.", f"In the settings: CELERY_{name.upper()} = True")


def retry_on_worker_lost(facts: Facts) -> Iterator[Problem]:
    """Look for the option that overrides `task_reject_on_worker_lost` since Celery 5.7: the message is
    acknowledged and sent again, and after `max_retries` deaths it is dropped."""
    if current_app.conf.get("task_retry_on_worker_lost"):
        yield Problem(
            "Celery's task_retry_on_worker_lost is on. It overrides task_reject_on_worker_lost: after three "
            "deaths of its process a message is dropped.",
            "In the settings: CELERY_TASK_RETRY_ON_WORKER_LOST = False",
        )
    for name, task in sorted(current_app.tasks.items()):
        overrides = getattr(task, "retry_on_worker_lost", None)  # celery-types does not know it
        if name in ROUTES and overrides and not current_app.conf.task_retry_on_worker_lost:
            yield Problem(
                f"The Celery task {name} has retry_on_worker_lost, which overrides reject_on_worker_lost.",
                "Remove the option from the task.",
            )


def visibility(facts: Facts) -> Iterator[Problem]:
    """Compare the time after which the broker delivers again with the times that tasks may take."""
    if of_broker.is_rabbitmq():
        told = getattr(settings, "REFRESH_VISIBILITY_TIMEOUT_SECONDS", 0)
        yield from rabbitmq.waits_for(_time_limits(), float(told))
        return
    seconds = float(_transport_options().get("visibility_timeout", 3600))
    if seconds < SHORTEST_VISIBILITY:
        yield Problem(
            f"The broker delivers a message again after {seconds:g} s, although its worker may still be at work.",
            "Leave REFRESH_VISIBILITY_TIMEOUT_SECONDS at its default of 300.",
        )
    for name, limit in sorted(_time_limits().items()):
        if limit > seconds:
            yield warning(
                f"{name} may run for {limit:g} s, and the broker delivers its message again after {seconds:g} "
                "s: it would run twice at once.",
                f"Set REFRESH_VISIBILITY_TIMEOUT_SECONDS={limit + 60:g} for every process, also of other apps on "
                "this broker, because the shortest timeout applies to all of them.",
            )


def transport(facts: Facts) -> Iterator[Problem]:
    options = _transport_options()
    if of_broker.is_rabbitmq():
        yield from rabbitmq.transport(options, _transport_class())
        return
    if not options.get("socket_timeout") or not options.get("socket_connect_timeout"):
        yield Problem(
            "The broker's connections have no timeout (socket_timeout, socket_connect_timeout): a Redis that "
            "hangs holds up each process that reports.",
            "Set both to 5 in CELERY_BROKER_TRANSPORT_OPTIONS.",
        )
    if not issubclass(_transport_class(), Transport):
        yield warning(
            f"Celery uses the transport {_transport_class().__module__}, which loses messages when Redis "
            "refuses writes.",
            "Start Celery with `-A harbor_refresh`.",
        )


def time_zone(facts: Facts) -> Iterator[Problem]:
    if not settings.USE_TZ or not current_app.conf.enable_utc:
        yield Problem(
            "USE_TZ or enable_utc is off: beat then floods the workers, or stops, when the clocks change.",
            "In the settings: USE_TZ = True, and no CELERY_ENABLE_UTC",
        )


def prefetch(facts: Facts) -> Iterator[Problem]:
    if current_app.conf.worker_prefetch_multiplier != 1:
        yield warning(
            f"worker_prefetch_multiplier is {current_app.conf.worker_prefetch_multiplier}: a worker holds "
            "messages that another worker could begin.",
            "In the settings: CELERY_WORKER_PREFETCH_MULTIPLIER = 1",
        )


def _transport_options() -> dict[str, Any]:
    return dict(current_app.conf.broker_transport_options or {})


def _transport_class() -> type[Any]:
    found: type[Any] = current_app.connection_for_write().get_transport_cls()
    return found


def _time_limits() -> dict[str, float]:
    """The longest time of each task that has a limit, the general one included. A limit that is no number ends its
    job with that reason when it is due, and is not looked at here."""
    limits = {
        name: max(_number(task.time_limit), _number(task.soft_time_limit))
        for name, task in current_app.tasks.items()
        if not name.startswith("celery.")
    }
    general = current_app.conf.task_time_limit or current_app.conf.task_soft_time_limit
    if general:
        limits["A task (task_time_limit)"] = float(general)
    return {name: limit for name, limit in limits.items() if limit}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


CHECKS = (
    Check("settings.checks", "the settings fit together", system_checks),
    Check("celery.acknowledgement", "a killed worker loses no message", late_acknowledgement),
    Check("celery.worker_lost", "nothing overrides task_reject_on_worker_lost", retry_on_worker_lost),
    Check("celery.visibility", "the broker waits for the longest task", visibility),
    Check("celery.transport", "the broker's connections end in time", transport),
    Check("celery.time_zone", "beat counts in UTC", time_zone),
    Check("celery.prefetch", "workers hold no messages back", prefetch),
)
