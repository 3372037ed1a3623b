"""On a sound system, with the settings of production, the doctor finds nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.faults.cluster import Cluster
from tests.integration.checks.examined import CHECKS
from tests.terminal import ran
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A system on servers of its own, because those of the tests do not write to their disk."""
    data = servers.directory / tmp_path.name  # `nobody` can enter it, as whom PostgreSQL runs if we are root
    with EmbeddedPostgres(data / "postgres") as postgres, EmbeddedRedis(data / "redis") as redis:
        made = Cluster("", tmp_path)
        made.every.clear()
        made.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("REFRESH_", "CELERY"))
        }
        made.env |= {
            "DJANGO_SETTINGS_MODULE": "settings.production",
            "DATABASE_URL": postgres.url,
            "REDIS_URL": redis.url,
            "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            "ALLOWED_HOSTS": "refresh.example",
            "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "1",
        }
        yield made
        made.end()


def manage(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "manage.py", *words], env=cluster.env)


def test_the_doctor_finds_nothing_on_a_sound_system_and_says_so(cluster: Cluster) -> None:
    """And on the same system without its beat and workers it finds that."""
    assert manage(cluster, "migrate", "--noinput").returncode == 0
    cluster.worker()
    beat = cluster.beat()
    told: dict[str, Any] = {}

    def is_sound() -> bool:
        told.update(json.loads(manage(cluster, "doctor", "--json").stdout))
        return bool(told["sound"])

    try:
        wait_for(is_sound, "the system to be sound")
    except AssertionError:
        raise AssertionError([one for one in told["checks"] if one["verdict"] != "sound"]) from None
    assert [one["check"] for one in told["checks"]] == [check.id for check in CHECKS]
    in_words = f"{len(CHECKS)} checks: {len(CHECKS)} sound.\n"

    def says_so() -> bool:
        again = manage(cluster, "doctor", "--fail-level", "warning")
        return (again.returncode, again.stdout, again.stderr) == (0, in_words, "")

    wait_for(says_so, f"{in_words!r} and nothing else")
    for member in (beat, *cluster.members[:1]):
        member.kill()
    ended = manage(cluster, "doctor", "--only", "workers")
    assert (ended.returncode, "no worker answers Celery's remote control" in ended.stdout) == (1, True)
