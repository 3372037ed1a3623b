"""docs/howto/monitor.md: its probes and its variables of traces, used as they are."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from redis import Redis

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.local.binaries import find_postgres
from tests import pages, terminal
from tests.faults.cluster import Cluster
from tests.faults.conftest import cluster  # noqa: F401  # a fixture
from tests.integration.executions.api.api_client import token
from tests.integration.sample_executions import made
from tests.integration.service.web import serving
from tests.integration.service.web_server import web_server
from tests.integration.tracing.collector import Collector
from tests.integration.tracing.conftest import collector  # noqa: F401  # a fixture
from tests.waiting import wait_for

PAGE, ALERTS = pages.read("docs/howto/monitor.md"), pages.read("docs/howto/alerts.md")
#: Each probe is one line.
PROBES: list[tuple[str, dict[str, Any]]] = [
    next(iter(yaml.safe_load(line).items()))
    for line in pages.lines(pages.section(PAGE, "Health"), "yaml")
    if not line.startswith("#")
]
OVER_HTTP = {name: probe["httpGet"] for name, probe in PROBES if "httpGet" in probe}
(ALIVE,) = (probe["exec"]["command"] for _, probe in PROBES if "exec" in probe)
TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER_TRACE = "1bf7651916cd43dd8448eb211c80319c"


def typed(line: str, **environment: str) -> str:
    """Run a line in a shell; return what it printed."""
    path = f"{Path(sys.executable).parent}:{find_postgres()}:/usr/local/bin:/usr/bin:/bin"
    return terminal.typed(line, pages.ROOT, {"PATH": path, **environment})


def test_a_sound_service_passes_each_probe_over_http(database: str, redis: Redis) -> None:
    assert OVER_HTTP.keys() == {"livenessProbe", "readinessProbe"}
    assert {probe["port"] for probe in OVER_HTTP.values()} == {8000}, "the port of the image"
    with web_server() as url, httpx2.Client(base_url=url, trust_env=False, timeout=60) as client:
        for probe in OVER_HTTP.values():
            assert client.get(probe["path"], headers={"Host": "10.1.2.3"}).status_code == 200, probe


@pytest.mark.slow
def test_the_probes_fail_until_the_programs_of_the_alerts_run(cluster: Cluster) -> None:  # noqa: F811
    """The page of alerts says how to start them. The command of a probe runs in the folder with manage.py."""
    commands = {"worker": ALIVE, "beat": [*ALIVE[:-1], "beat"]}
    assert ALIVE[-1] == "worker"
    cluster.env["PATH"] = f"{Path(sys.executable).parent}:{cluster.env['PATH']}"

    def code(name: str) -> int:
        done = subprocess.run(commands[name], cwd=pages.ROOT, env=cluster.env, capture_output=True, check=False)
        return done.returncode

    assert (code("worker"), code("beat")) == (1, 1)
    worker, beat, of_one_queue = (one for one in pages.spans(ALERTS) if one.startswith("celery "))
    for name, line in {"worker": worker, "beat": beat}.items():
        member = cluster.start(name, ["/bin/sh", "-ec", f"exec {line}"])
        wait_for(lambda name=name: code(name) == 0, f"{line} to be alive", log=member.log)  # type: ignore[misc]
    line = of_one_queue.replace("NAME", "harbor_refresh.jobs")
    member = cluster.start("jobs", ["/bin/sh", "-ec", f"exec {line} -n another@%h"])
    wait_for(lambda: " ready." in member.text(), f"{line} to be ready", log=member.log)
    assert ".> harbor_refresh.jobs " in member.text()


@pytest.mark.slow
def test_the_variables_of_the_page_send_the_traces_of_callers_who_ask_for_them(
    database: str,
    redis: Redis,
    collector: Collector,  # noqa: F811
    tmp_path: Path,
) -> None:
    """pip has no index here, so it succeeds only if the versions of the page's file are those of the tests. With
    the sampler of the page, a caller decides for its own report."""
    (block,) = pages.codes(pages.section(PAGE, "Traces"), "sh")
    variables = tmp_path / "variables"
    said = typed(f"{block}\nenv > {shlex.quote(str(variables))}", PIP_NO_INDEX="1", HOME=str(tmp_path))
    assert "Requirement already satisfied: opentelemetry-sdk==" in said
    exported = dict(re.findall(r"^((?:OTEL|REFRESH)_\w+)=(.*)$", variables.read_text(), re.MULTILINE))
    assert len(exported) == 4
    assert exported["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    exported |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    _, tasks = made(2)
    with serving(database, tmp_path / "web.log", **exported) as url:
        headers = {"Authorization": f"Bearer {token(Scope.REPORT)}"}
        with httpx2.Client(base_url=f"{url}/api/v1", trust_env=False, headers=headers, timeout=60) as client:
            for task, trace, flags in zip(tasks, (OTHER_TRACE, TRACE), ("00", "01"), strict=True):
                parent = {"traceparent": f"00-{trace}-b7ad6b7169203331-{flags}"}
                answer = client.post(f"/tasks/{task}/report", json={"status": "Success"}, headers=parent)
                assert answer.status_code == 200, answer.text
        wait_for(lambda: "report" in collector.names(TRACE), "the span of the report", log=tmp_path / "web.log")
    assert collector.names(OTHER_TRACE) == []
    assert {one.service for one in collector.spans()} == {"harbor-refresh"}
