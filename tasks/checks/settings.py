"""Checks of the settings: of their values, and of which go together. docs/reference/checks.md lists them."""

import os
from collections.abc import Iterator
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections

from harbor_refresh.executions.apps import other_than_postgresql
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.checks import bad_settings
from harbor_refresh.executions.declarations import PREFIX, is_service
from harbor_refresh.tasks.broker.amqp_address import is_amqp
from harbor_refresh.tasks.checks.registry import check
from harbor_refresh.tasks.conf import Refresh, refresh_settings


def check_settings(**_: Any) -> list[CheckMessage]:
    conf = refresh_settings()
    return [*_values(conf), *_broker(conf), *_names()]


@check("settings.checks", "the settings fit together")
def system_checks(facts: object) -> Iterator[CheckMessage]:
    """Django's and our own checks of the settings; those for production unless DEBUG is on."""
    for message in bad_settings(None, is_deployed=not settings.DEBUG):
        text, hint = (" ".join(str(one or "").split()) for one in (message.msg, message.hint))
        yield CheckMessage(message.level, f"{message.id}: {text}", hint or "manage.py check --deploy")


def _values(conf: Refresh) -> Iterator[CheckMessage]:
    if found := other_than_postgresql(connections[DEFAULT_DB_ALIAS]):
        yield found
    if is_attached() and (conf.strategy != "claim" or conf.in_process):
        yield Error(
            f"REFRESH_ATTACH is harbor, REFRESH_STRATEGY is {conf.strategy} and "
            f"EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS is {conf.interval:g}: the marks of Harbor's cores "
            "would stay in its set.",
            hint="Attached, only the strategy claim and an interval above 0 take them.",
            id="harbor_tasks.E004",
        )
    if not conf.key_prefix.startswith("cache:execution:refresh:"):
        yield Warning(
            f"REFRESH_KEY_PREFIX is {conf.key_prefix!r}: operators look for their keys under "
            "cache:execution:refresh:",
            hint="Keep that beginning.",
            id="harbor_tasks.W001",
        )


def _names() -> Iterator[CheckMessage]:
    """Name the variables of the service that no setting reads: times that are constants now, and typing errors."""
    if not is_service():
        return
    for name in sorted(os.environ):
        is_ours = name.startswith(PREFIX) or name == "MAX_DANGLING_HOURS"
        if is_ours and not hasattr(settings, name.removesuffix("_FILE")):
            yield Warning(
                f"{name} is no setting, or no longer one, so it has no effect.",
                hint="Remove it. Intervals are rows of the schedule, in the admin.",
                id="harbor_tasks.W002",
            )


def _broker(conf: Refresh) -> Iterator[CheckMessage]:
    if is_amqp(str(current_app.conf.broker_url or "")) and conf.strategy != "claim":
        yield Error(
            f"The broker is RabbitMQ, and REFRESH_STRATEGY is {conf.strategy}: its ticks must reach every worker "
            "by a channel of Redis, but through RabbitMQ each tick would reach only one.",
            hint="Remove REFRESH_STRATEGY, or name a Redis in CELERY_BROKER_URL.",
            id="harbor_tasks.E008",
        )
