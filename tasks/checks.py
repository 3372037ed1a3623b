"""Check the settings at start. Each message has an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from tasks.conf import refresh_settings


def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    conf = refresh_settings()
    messages: list[CheckMessage] = []
    engine = settings.DATABASES["default"]["ENGINE"]
    if not engine.startswith("django.db.backends.postgresql"):
        messages.append(
            Error(
                f"The database is {engine}; Harbor Refresh speaks PostgreSQL only.",
                hint="Set DATABASE_URL to postgresql://user:password@host:port/name.",
                id="harbor_tasks.E001",
            )
        )
    if conf.node_ttl < 3 * conf.heartbeat:
        messages.append(
            Error(
                f"REFRESH_NODE_TTL_SECONDS is {conf.node_ttl:g} and REFRESH_HEARTBEAT_SECONDS is "
                f"{conf.heartbeat:g}: one late heartbeat would declare a live node dead.",
                hint="Make the first at least three times the second.",
                id="harbor_tasks.E002",
            )
        )
    if conf.stale <= conf.node_ttl:
        messages.append(
            Error(
                f"REFRESH_STALE_SECONDS is {conf.stale:g}, not above REFRESH_NODE_TTL_SECONDS "
                f"({conf.node_ttl:g}): claims of live nodes would be taken from them.",
                hint="Leave it at its default of 300.",
                id="harbor_tasks.E003",
            )
        )
    if not conf.key_prefix.startswith(("cache:execution:refresh:", "{")):
        messages.append(
            Warning(
                f"REFRESH_KEY_PREFIX is {conf.key_prefix!r}: operators look for their keys under "
                "cache:execution:refresh:",
                hint="Keep that beginning, or put it into a hash tag for Redis Cluster.",
                id="harbor_tasks.W001",
            )
        )
    return messages
