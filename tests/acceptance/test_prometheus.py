"""A real Prometheus scrapes the real service: its configuration and rules load, and each panel's query has
data."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.local.ports import choose_port
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses, succeed
from tests.integration.executions.api.api_client import token
from tests.integration.service.web import serving
from tests.programs import needs
from tests.waiting import wait_for

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **parameters: str) -> Any:
        answer = httpx2.get(f"{self.url}/api/v1/{path}", params=parameters, trust_env=False, timeout=30).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, text: str) -> list[Any]:
        found: list[Any] = self.get("query", query=text)["result"]
        return found


def configured(folder: Path, target: str, secret: str) -> Path:
    """The configuration that we deliver, with the address and the token of this test, in a hurry."""
    text = (DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8")
    (folder / "token").write_text(secret)
    (folder / "alerts.yml").write_bytes((DEPLOY / "prometheus/alerts.yml").read_bytes())
    for old, new in (
        ("harbor-refresh.example:8000", target),
        ("/etc/prometheus/harbor-refresh.token", str(folder / "token")),
        ("15s", "1s"),
    ):
        assert old in text
        text = text.replace(old, new)
    config = folder / "prometheus.yml"
    config.write_text(text)
    return config


@pytest.fixture
def prometheus(cluster: Cluster, database: str, tmp_path: Path) -> Iterator[Prometheus]:
    program = needs("prometheus")
    with serving(database, tmp_path / "gunicorn.log") as web:
        config = configured(tmp_path, web.removeprefix("http://"), token(Scope.READ))
        port = choose_port()
        words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        member = cluster.start("prometheus", [str(program), *words, f"--web.listen-address=127.0.0.1:{port}"])
        found = Prometheus(f"http://127.0.0.1:{port}")
        wait_for(lambda: "ready to receive" in member.text(), "Prometheus to be ready", log=member.log)
        yield found


@pytest.mark.slow
def test_every_query_of_the_dashboard_has_data_and_every_rule_loads(
    prometheus: Prometheus, cluster: Cluster
) -> None:
    cluster.worker()
    cluster.beat({"Reconcile": 1, "Recover stale claims": 1})
    succeed(many(20, tasks=2))
    wait_for(lambda: statuses() == {"Success": 20}, "the refresh")
    wait_for(lambda: prometheus.query("harbor_refresh_last_reconcile_age_seconds"), "a pass of reconcile")
    wait_for(lambda: prometheus.query("count_over_time(up[1m]) >= 4"), "a few scrapes")
    queries = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
    assert len(queries) > 25

    def without_data() -> list[tuple[str, str]]:
        """A scrape that fails, because a process stands still, hides every gauge until the next."""
        return [one for one in queries if not prometheus.query(one[1].replace("$__rate_interval", "1m"))]

    def refreshes() -> float:
        found = prometheus.query('harbor_refresh_refreshes_total{result="changed"}')
        return sum(float(one["value"][1]) for one in found)

    wait_for(lambda: not without_data(), "data for each query")
    wait_for(lambda: refreshes() >= 20, "the refreshes to be scraped")
    (group,) = prometheus.get("rules")["groups"]
    names = re.findall(r"alert: (\w+)", (DEPLOY / "prometheus/alerts.yml").read_text(encoding="utf-8"))
    assert [rule["name"] for rule in group["rules"]] == names
    assert {(rule["health"], rule.get("lastError", "")) for rule in group["rules"]} == {("ok", "")}
    assert [
        one["labels"]["alertname"] for one in prometheus.get("alerts")["alerts"] if one["state"] == "firing"
    ] == []


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_is_whole(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
    assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    assert len({one["id"] for one in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
