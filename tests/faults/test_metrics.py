"""What /metrics says after a simulated run in which workers were killed: to the unit what the database says."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import StatusChange, Task
from harbor_refresh.executions.status import FINAL
from tests.faults.cluster import Cluster
from tests.integration.executions.api.api_client import token
from tests.integration.scrapes import Scrape, scraped
from tests.integration.service.web import serving
from tests.waiting import wait_for

FAULTS = ("--errors", "0.2", "--retries", "0.2", "--stops", "0.1", "--duplicates", "0.3", "--late", "0.2")
KINDS = ("refreshes", "reports", "executions_claimed", "executions_recovered", "quarantines", "marks_lost")


def simulated(cluster: Cluster, executions: int) -> dict[str, Any]:
    """Runners make a plan true, report by report; the tally is theirs."""
    words = ["--executions", str(executions), "--seed", "11", "--timeout", "600", *FAULTS, "--json"]
    run = cluster.start("simulate", [sys.executable, "-m", "examples.simulation", *words])
    wait_for(run.died, "the simulation to end", log=run.log)
    written = run.text()
    result: dict[str, Any] = json.loads(written[written.index("{\n") :])  # the warnings of the checks stand above
    assert result["holds"], written
    return result


def told(cluster: Cluster, line: str) -> int:
    """The sum of the numbers in this log line of all workers."""
    return sum(map(int, re.findall(line, cluster.logs())))


def scrape(database: str, log: Path, secret: str) -> Scrape:
    with serving(database, log) as url:
        answer = httpx2.get(
            f"{url}/metrics", headers={"Authorization": f"Bearer {secret}"}, trust_env=False, timeout=30
        )
    assert answer.status_code == 200
    return scraped(answer.text)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["committed", "deciding"])
def test_the_metrics_agree_with_the_database_to_the_unit_after_a_killed_worker(
    point: str, cluster: Cluster, holds: Callable[..., None], database: str, tmp_path: Path
) -> None:
    """A refresh that dies before its commit has counted nothing; one that dies after it, everything."""
    acted = tmp_path / "acted"
    # with one process, so that no other one dies between a claim and the count of it
    act = {"point": point, "act": "kill_group", "once": str(acted)}
    victim = cluster.worker("victim", concurrency=1, sabotage=act)
    cluster.worker("heir")
    cluster.beat()
    tally = simulated(cluster, 60)["tally"]
    assert acted.exists()
    assert victim.died()
    holds()
    found = scrape(database, tmp_path / "gunicorn.log", token(Scope.READ))
    counted = {
        (name.removeprefix("harbor_refresh_").removesuffix("_total"), series): count
        for (name, series), count in found.items()
        if name.endswith("_total") and count
    }
    assert {key: count for key, count in counted.items() if key[0] in KINDS and key[1] != "result=unchanged"} == {
        ("refreshes", "result=changed"): StatusChange.objects.count(),
        ("reports", "result=applied,source=code"): tally["applied"],
        ("reports", "result=unchanged,source=code"): tally["unchanged"],
        ("executions_claimed", ""): told(cluster, r"Claimed (\d+) executions"),
        ("executions_recovered", ""): told(cluster, r"Recovered (\d+) stale executions"),
    }
    assert tally["refused"] == 0
    assert tally["stops"] > 0
    final = StatusChange.objects.filter(to_status__in=FINAL).count()
    assert final > 0
    assert found["harbor_refresh_report_to_true_seconds_count", ""] == final
    assert found["harbor_refresh_report_to_true_seconds_bucket", "le=+Inf"] == final
    assert {name: found[f"harbor_refresh_{name}", ""] for name in ("backlog", "in_flight", "quarantined")} == {
        "backlog": 0,
        "in_flight": 0,
        "quarantined": 0,
    }
    assert Task.objects.filter(status_code__lt=3).count() == 0
