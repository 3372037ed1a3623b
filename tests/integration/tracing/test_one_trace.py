"""One trace from the report to the completed refresh: real processes, and a collector that gets their spans."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from redis import Redis

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from tests.faults.cluster import Cluster
from tests.integration.executions.api.api_client import token
from tests.integration.sample_executions import made, status_of
from tests.integration.service.web import serving
from tests.integration.tracing.collector import Collector, Received
from tests.integration.tracing.conftest import variables
from tests.waiting import wait_for

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TREE = {
    "report": CALLER,
    "mark": "report",
    "claim": "report",
    "refresh": "report",
    "write": "refresh",
    "complete": "refresh",
}


@pytest.fixture
def cluster(database: str, redis: Redis, collector: Collector, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(database, tmp_path)
    cluster.env |= variables(collector)
    yield cluster
    cluster.end()


def facts(span: Received) -> dict[str, object]:
    """The attributes without their prefix, and without those that no two runs share."""
    found = {name.removeprefix("harbor_refresh."): value for name, value in span.attributes.items()}
    return {
        name: value for name, value in found.items() if name not in ("node", "request") and "seconds" not in name
    }


def test_a_report_over_http_is_one_trace_from_the_span_of_its_caller_to_the_completed_refresh(
    database: str, cluster: Cluster, collector: Collector, tmp_path: Path
) -> None:
    """The worker would send its spans after ten minutes, and is stopped before: its process sends what is left."""
    worker = cluster.worker(concurrency=1, OTEL_BSP_SCHEDULE_DELAY="600000")
    execution, (task, other) = made(2)
    with serving(database, tmp_path / "web.log", **variables(collector)) as url:
        body = {"reports": [{"task_id": task, "status": "Error"}, {"task_id": other, "status": "Success"}]}
        headers = {
            "Authorization": f"Bearer {token(Scope.REPORT)}",
            "traceparent": f"00-{TRACE}-{CALLER}-01",
            "X-Request-ID": "order-66",
        }
        with httpx2.Client(base_url=url, trust_env=False, headers=headers, timeout=120) as client:
            assert (
                client.post("/api/v1/reports", json=body, headers={"Authorization": "Bearer no"}).status_code
                == 401
            )
            assert client.post("/api/v1/reports", json=body).json()["applied"] == 2
        wait_for(lambda: status_of(execution) == "Error", "the refresh", log=worker.log)
        assert collector.spans("refresh") == []
        worker.process.terminate()  # a warm shutdown: of its main process alone
        wait_for(lambda: set(collector.names(TRACE)) >= set(TREE), "the whole trace", log=worker.log)
    assert collector.parents(TRACE) == TREE
    assert {one.service for one in collector.spans()} == {"harbor-refresh"}
    spans = {one.name: one for one in collector.spans(trace=TRACE)}
    assert spans["report"].attributes["harbor_refresh.request"] == "order-66"
    about = {"executions": 1, "execution.id": execution.pk}
    assert {name: facts(one) for name, one in spans.items()} == {
        "report": {"source": "api", "reports.applied": 2, "reports.unchanged": 0, "reports.refused": 0, **about},
        "mark": about,
        "claim": {"backlog": 1, "failed_before": 0, "execution.vendor_type": "TEST", **about},
        "refresh": {
            "execution.vendor_type": "TEST",
            "result": "refreshed",
            **about,
        },
        "write": {"executions": 1, "changed": 1},
        "complete": {"executions": 1, "claim_expired": 0},
    }
    assert {one.error for one in collector.spans()} == {""}


def test_after_a_worker_was_killed_between_claim_and_commit_the_trace_completes_on_its_heir(
    cluster: Cluster, traced: Collector, tmp_path: Path
) -> None:
    plan = {"point": "deciding", "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", concurrency=1, sabotage=plan)
    execution, (task,) = made(1)
    report([Report(task, "Success")])
    wait_for(victim.died, "the victim to die", log=victim.log)
    assert status_of(execution) != "Success"
    cluster.worker("heir", concurrency=1)
    cluster.beat()
    refresh = traced.span("refresh")
    complete = traced.span("complete")
    (root,) = traced.spans("report")
    assert (refresh.parent, complete.parent) == (root.id, refresh.id)
    assert facts(refresh) == {
        "executions": 1,
        "execution.id": execution.pk,
        "execution.vendor_type": "TEST",
        "result": "refreshed",
    }
    claims = traced.spans("claim", root.trace)
    assert [one.parent for one in claims] == [root.id] * len(claims)
    assert claims[-1].attributes["harbor_refresh.node"] == refresh.attributes["harbor_refresh.node"]
    assert Execution.objects.get().status == "Success"
