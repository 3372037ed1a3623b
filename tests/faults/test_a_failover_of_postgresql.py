"""PostgreSQL fails over to a standby in the middle of the work. The new primary is at the address of the old one.

Reports come meanwhile, as runners send them: a report that was not acknowledged is sent again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import Error, connections
from pytest_django import DjangoDbBlocker
from redis import Redis

from harbor_refresh.executions.errors import RefreshError
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Quarantine, Task
from harbor_refresh.local.postgres import DATABASE
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from tests import servers
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses
from tests.integration.sample_executions import drifted
from tests.soak.servers import HOST, PostgresTier, Standby
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

COUNT = 2_000
BATCH = 25


@pytest.fixture
def tier(tmp_path: Path, redis: Redis, django_db_blocker: DjangoDbBlocker) -> Iterator[PostgresTier]:
    """A primary behind a fixed address, migrated, which Django uses in this process as well."""
    # `nobody` can enter it, as whom PostgreSQL runs if we are root
    tier = PostgresTier(servers.directory / tmp_path.name)
    mine = connections["default"]
    before = dict(mine.settings_dict)
    with django_db_blocker.unblock():
        mine.close()
        mine.settings_dict.update(HOST=HOST, PORT=tier.proxy.port, NAME=DATABASE)
        call_command("migrate", verbosity=0)
        yield tier
        mine.close()
        mine.settings_dict.update(before)
    tier.end()


@pytest.fixture
def cluster(tier: PostgresTier, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(DATABASE, tmp_path)
    cluster.env["DATABASE_URL"] = tier.url
    yield cluster
    cluster.end()


def reported(tasks: Sequence[int]) -> Callable[[], None]:
    """Report in a thread that each of these tasks has succeeded; return how to wait for its end."""

    def send() -> None:
        for begin in range(0, len(tasks), BATCH):
            batch = [Report(pk, "Success", 1) for pk in tasks[begin : begin + BATCH]]
            while not _is_acknowledged(batch):
                pass
        connections["default"].close()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()

    def finish() -> None:
        thread.join(300)
        assert not thread.is_alive(), "a report was never acknowledged"

    return finish


def _is_acknowledged(batch: Sequence[Report]) -> bool:
    try:
        report(batch)
    except (Error, RefreshError):
        connections["default"].close()
        return False
    return True


@pytest.mark.parametrize("synchronous", [True, False], ids=["which has all commits", "which lacks some commits"])
def test_a_promoted_standby_goes_on_with_the_work(
    synchronous: bool, tier: PostgresTier, cluster: Cluster, holds: Callable[..., None]
) -> None:
    """Commits that the standby lacks are lost, and so are their reports; the runner sends them again at last."""
    ids = many(COUNT)
    tasks = list(Task.objects.filter(execution_id__in=ids).order_by("pk").values_list("pk", flat=True))
    workers = [cluster.worker(name, HARBOR_REFRESH_TEST_CHUNK="20") for name in ("one", "two")]
    beat = cluster.beat()
    finish = reported(tasks)
    wait_for(lambda: statuses().get("Success", 0) > COUNT // 10, "the work to begin", log=workers[0].log)
    tier.fail_over(seconds_together=1, seconds_away=1, synchronous=synchronous)
    connections["default"].close()
    finish()
    if not synchronous:
        reported(tasks)()
    holds()
    assert statuses() == {"Success": COUNT}
    assert not Execution.objects.filter(end_time=None).exists()
    assert not Quarantine.objects.exists(), "a failover counts as a failure of an execution"
    assert [member.died() for member in (*workers, beat)] == [False, False, False]


def test_a_dry_run_of_reconcile_reads_a_standby_too(tier: PostgresTier) -> None:
    drifted(minutes=60)
    reconcile()
    standby = tier.made(Standby(tier.directory / "standby", tier.primary))
    tier.proxy.target = standby.port
    connections["default"].close()
    wait_for(lambda: reconcile(dry_run=True).drifted == 1, "the standby to have it")
