"""Checks of a project in which our apps are guests: its settings, its driver, its broker and its routes.

The service makes none of them: settings/env.py ends it at once for a bad variable. A project goes on; each worker
and beat logs what is wrong at its start. docs/reference/checks.md lists them.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from harbor_refresh.executions.conf import DECLARED as OF_EXECUTIONS
from harbor_refresh.executions.declarations import PREFIX, checked, is_service, key_of, of_project, takes
from harbor_refresh.tasks.broker.celery_queues import ROUTES
from harbor_refresh.tasks.broker.redis_address import read_address
from harbor_refresh.tasks.checks.celery_options import CONNECT
from harbor_refresh.tasks.conf import ADDRESS, DECLARED, LOCAL, refresh_settings
from harbor_refresh.tasks.without_redis import mode


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
            yield Error(
                f"HARBOR_REFRESH has no setting {key!r}.",
                hint=_nearest(str(key), [*known, ADDRESS]),
                id="harbor_refresh.E002",
            )


def _nearest(key: str, names: list[str]) -> str | None:
    if key.startswith(PREFIX) and key_of(key) in names:
        return f"Leave out {PREFIX}: {key_of(key)!r}."
    near = get_close_matches(key_of(key.upper()), names, n=1, cutoff=0)
    return f"The nearest name is {near[0]!r}." if near else None


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
