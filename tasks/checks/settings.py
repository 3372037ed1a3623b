"""Checks of the settings: of their values, and of which go together; then those of a project in which our apps are
guests. The service needs none of the latter, because settings/env.py ends it at once for a bad variable. Each
worker and beat of a project logs what is wrong at its start. docs/reference/checks.md lists them."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections

from harbor_refresh.executions.apps import other_than_postgresql
from harbor_refresh.executions.attached.attachment import is_attached
from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.executions.conf.declarations import PREFIX, checked, is_service, key_of, of_project, takes
from harbor_refresh.executions.conf.startup import bad_settings
from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.broker.connecting import is_amqp
from harbor_refresh.tasks.broker.redis_address import read_address
from harbor_refresh.tasks.checks.celery_options import CONNECT
from harbor_refresh.tasks.checks.registry import check
from harbor_refresh.tasks.conf import ADDRESS, DECLARED, LOCAL, Refresh, refresh_settings
from harbor_refresh.tasks.without_redis import mode


def check_settings(**_: Any) -> list[CheckMessage]:
    return [*_together(refresh_settings()), *_names()]


@check("settings.checks", "the settings fit together")
def system_checks(facts: object) -> Iterator[CheckMessage]:
    """Django's and our own checks of the settings; those for production unless DEBUG is on."""
    for message in bad_settings(None, is_deployed=not settings.DEBUG):
        text, hint = (" ".join(str(one or "").split()) for one in (message.msg, message.hint))
        yield CheckMessage(message.level, f"{message.id}: {text}", hint or "manage.py check --deploy")


def _together(conf: Refresh) -> Iterator[CheckMessage]:
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
    if is_amqp(str(current_app.conf.broker_url or "")) and conf.strategy != "claim":
        yield Error(
            f"The broker is RabbitMQ, and REFRESH_STRATEGY is {conf.strategy}: its ticks must reach every worker "
            "by a channel of Redis, but through RabbitMQ each tick would reach only one.",
            hint="Remove REFRESH_STRATEGY, or name a Redis in CELERY_BROKER_URL.",
            id="harbor_tasks.E008",
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


def check_project(**_: Any) -> list[CheckMessage]:
    """Eager mode has no broker and no queue."""
    if is_service():
        return []
    checks = (_settings, _driver) if mode.is_eager() else (_settings, _driver, _queue, _routes)
    return [problem for check in checks for problem in check()]


def _settings() -> Iterator[CheckMessage]:
    """Compare HARBOR_REFRESH with the settings that there are."""
    given = getattr(settings, "HARBOR_REFRESH", {})
    if not isinstance(given, dict):
        yield Error(
            f"HARBOR_REFRESH is a {type(given).__name__}, so none of its settings applies.",
            hint='It takes a dictionary, such as HARBOR_REFRESH = {"REDIS_URL": "redis://localhost:6379/0"}.',
            id="harbor_refresh.E001",
        )
        return
    known = {one.key: one for one in (*OF_EXECUTIONS.values(), *DECLARED.values()) if not one.of_service}
    for key, value in given.items():
        if one := known.get(key):
            try:
                checked(one, value)
            except (ValueError, TypeError, LookupError):
                yield Error(
                    f"HARBOR_REFRESH[{key!r}] is {'not what it takes' if one.is_secret else repr(value)}.",
                    hint=f"It takes {takes(one, as_text=False)}.",
                    id="harbor_refresh.E003",
                )
        elif key != ADDRESS:
            (near,) = get_close_matches(key_of(str(key).upper()), [*known, ADDRESS], n=1, cutoff=0)
            yield Error(
                f"HARBOR_REFRESH has no setting {key!r}.",
                hint=f"The nearest name is {near!r}.",
                id="harbor_refresh.E002",
            )


def _driver() -> Iterator[CheckMessage]:
    """With psycopg2, which Django takes in its place, we could not tell one error of PostgreSQL from another."""
    try:
        import psycopg  # noqa: F401
    except ImportError as exc:
        yield Error(
            f"psycopg 3 cannot be loaded: {str(exc).splitlines()[0]}",
            hint='Type: pip install "psycopg[binary]". Or install libpq, with the packages of the system '
            "(libpq5 of Debian).",
            id="harbor_refresh.E009",
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
            "The broker is not a Redis, so the queue uses a Redis on this machine.",
            hint="Set REDIS_URL in HARBOR_REFRESH.",
            id="harbor_refresh.W001",
        )


def _routes() -> Iterator[CheckMessage]:
    """Tell the first task that goes elsewhere."""
    for name, ours in ROUTES.items():
        routed = current_app.amqp.router.route({}, name).get("queue")
        queue = str(getattr(routed, "name", routed))
        if queue != ours["queue"]:
            yield Error(
                f"{name} goes to the queue {queue}, not to {ours['queue']}, so no execution ends.",
                hint=CONNECT,
                id="harbor_refresh.E007",
            )
            return
