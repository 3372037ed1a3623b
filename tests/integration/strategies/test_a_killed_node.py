"""A node that dies in the middle of a cycle: which design loses what, and what heals it."""

import os
import subprocess
import sys

import pytest
from django.db import connection
from pytest_django import Settings

from benchmarks.designs import strategy
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from tests import servers
from tests.integration.redis_state import Redis
from tests.integration.strategies.marked_executions import LOCK, marked, statuses
from tests.pages import ROOT

pytestmark = pytest.mark.usefixtures("database", "redis")


#: A node of its own that dies before it refreshes its third execution.
DIES = """
import os, django
django.setup()
from harbor_refresh.executions.lifecycle import crash_points
from benchmarks.designs import strategy
reached = []
def die(point, ids):
    reached.append(ids) if point == "one" else None
    len(reached) < 3 or os._exit(9)
crash_points.handlers.append(die)
strategy().cycle()
"""


def die_in_a_cycle(name: str) -> None:
    env = {
        **os.environ,
        "DATABASE_URL": servers.postgres.url_for(connection.settings_dict["NAME"]),
        "REFRESH_STRATEGY": name,
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "CORE_INSTANCE_ID": "0",
        "CORE_INSTANCE_TOTAL": "1",
    }
    done = subprocess.run([sys.executable, "-c", DIES], cwd=ROOT, env=env, check=False, timeout=300)
    assert done.returncode == 9


def test_upstream_loses_what_it_popped_when_it_dies_and_reconcile_heals_it(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    ids = marked(150)
    die_in_a_cycle("upstream")
    assert strategy().backlog() == 50
    strategy().cycle()
    assert Execution.objects.filter(pk__in=ids, status="Running").count() == 98
    assert reconcile().marked == 98
    strategy().cycle()
    assert statuses(ids) == {"Success"}


@pytest.mark.parametrize("name", ["scan", "lock", "hash"])
def test_a_design_that_lets_go_of_a_mark_last_loses_nothing_when_it_dies(
    name: str, settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = name
    ids = marked(20)
    die_in_a_cycle(name)
    assert strategy().backlog() == 18
    redis.delete(LOCK)  # it would be free after the ttl of the one that died
    strategy().cycle()
    assert statuses(ids) == {"Success"}
