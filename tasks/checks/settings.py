"""Checks of the settings: of their values, and of which go together. docs/reference/checks.md lists them."""

import os
from collections.abc import Iterator
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections

from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.checks import bad_settings
from harbor_refresh.executions.declarations import PREFIX, is_service
from harbor_refresh.executions.installation import other_than_postgresql
from harbor_refresh.tasks.broker.amqp_address import is_amqp
from harbor_refresh.tasks.broker.redis_address import cluster_tag, is_cluster
from harbor_refresh.tasks.checks.registry import check
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.queue.keys import HARBORS_SET


def check_settings(**_: Any) -> list[CheckMessage]:
    conf = refresh_settings()
    return [*_values(conf), *_addresses(conf), *_names()]


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
    if not conf.key_prefix.startswith(("cache:execution:refresh:", "{")):
        yield Warning(
            f"REFRESH_KEY_PREFIX is {conf.key_prefix!r}: operators look for their keys under "
            "cache:execution:refresh:",
            hint="Keep that beginning, or put it into a hash tag for Redis Cluster.",
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


def _addresses(conf: Refresh) -> Iterator[CheckMessage]:
    on_cluster = is_cluster(conf.redis_url)
    if on_cluster and not cluster_tag(conf.redis_url, conf.key_prefix):
        yield Error(
            f"The queue is on a Redis Cluster, and REFRESH_KEY_PREFIX is {conf.key_prefix!r}: each script "
            "needs all its keys on one node, so the prefix must have a hash tag.",
            hint="Set REFRESH_KEY_PREFIX to {cache:execution:refresh:}",
            id="harbor_tasks.E005",
        )
    if on_cluster and conf.strategy != "claim":
        yield Error(
            f"The queue is on a Redis Cluster, and REFRESH_STRATEGY is {conf.strategy}: its keys are "
            "Harbor's, which carry no hash tag.",
            hint="Remove REFRESH_STRATEGY, or name a Redis that is no Cluster in REDIS_URL.",
            id="harbor_tasks.E006",
        )
    if on_cluster and is_attached():
        yield Error(
            f"REFRESH_ATTACH is harbor, and the queue is on a Redis Cluster: Harbor's set {HARBORS_SET} "
            "carries no hash tag, so no script could use it together with our keys.",
            hint="Name the Redis of Harbor in REDIS_URL. Harbor itself works with no Cluster.",
            id="harbor_tasks.E009",
        )
    broker = str(current_app.conf.broker_url or "")
    if is_cluster(broker):
        yield Error(
            "The broker is a Redis Cluster, and Celery has no transport for that.",
            hint="Name another Redis in CELERY_BROKER_URL; it may be behind Sentinel. The queue may stay.",
            id="harbor_tasks.E007",
        )
    if is_amqp(broker) and conf.strategy != "claim":
        yield Error(
            f"The broker is RabbitMQ, and REFRESH_STRATEGY is {conf.strategy}: its ticks must reach every worker "
            "by a channel of Redis, but through RabbitMQ each tick would reach only one.",
            hint="Remove REFRESH_STRATEGY, or name a Redis in CELERY_BROKER_URL.",
            id="harbor_tasks.E008",
        )
