"""The machine and the versions a figure was measured with."""

import os
import platform
import re
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import psutil
import psycopg
from redis import Redis, RedisError

#: The parameters that decide how fast a server writes.
PARAMETERS = ("shared_buffers", "fsync", "synchronous_commit", "full_page_writes", "max_wal_size")
KEPT_ON_DISK = ("appendonly", "save")
LIBRARIES = {"django": "django", "celery": "celery", "redis-py": "redis", "psycopg": "psycopg"}


def describe(database_url: str, redis_url: str, *, embedded: set[str], command: str) -> dict[str, Any]:
    with psycopg.connect(database_url) as connection:
        version_shown = _shown(connection, "server_version")
        parameters = {name: _shown(connection, name) for name in PARAMETERS}
    with Redis.from_url(redis_url) as client:
        server = cast("dict[str, Any]", client.info("server"))
        with suppress(RedisError):  # a hosted server may refuse CONFIG
            parameters |= cast("dict[str, str]", client.config_get(*KEPT_ON_DISK))
    redis_name = str(server.get("server_name", "redis"))
    redis_version = server.get(f"{redis_name}_version") or server["redis_version"]
    return {
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "system": platform.platform(),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(package) for name, package in LIBRARIES.items()},
            "postgresql": version_shown.split()[0],
            f"{redis_name} server": str(redis_version),
        },
        "embedded": sorted(embedded),
        "parameters": parameters,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
    }


def _shown(connection: psycopg.Connection, name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""


def _cpu() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()
