"""Ten thousand tasks of one execution end at the same moment."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from django.db import connection

from harbor_refresh.executions.models import Execution, Task
from tests.faults.cluster import ROOT, Cluster
from tests.faults.conftest import many

PROCESSES = 8


def refreshes() -> int:
    """Count the statements that locked executions for a refresh, by the count of the server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements "
            "WHERE query LIKE '%%FOR NO KEY UPDATE OF e%%' "
            "AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.slow
def test_reports_from_eight_processes_meet_no_error_and_few_refreshes(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION pg_stat_statements")
    worker = cluster.worker()
    cluster.beat()
    (hot,) = many(1, tasks=10_000)
    begun = time.monotonic()
    tasks = Task.objects.filter(execution_id=hot).order_by("pk").values_list("pk", flat=True)
    task_ids = [str(pk) for pk in tasks]
    runners = subprocess.run(
        [sys.executable, "-m", "tests.faults.runner", str(PROCESSES), *task_ids],
        cwd=ROOT,
        env=cluster.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (runners.returncode, runners.stderr) == (0, "")
    holds()
    execution = Execution.objects.get(pk=hot)
    assert (execution.status, execution.revision) == ("Success", 1)
    assert " ERROR " not in worker.text()
    # while reports keep coming, two refreshes of it are up to two seconds apart
    most = 20 + (time.monotonic() - begun)
    assert 0 < refreshes() <= most, "a refresh for each of the 1,000 batches would be 1,000 and more"
