"""docs/howto/monitor.md: its probes, used as they are."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from redis import Redis

from tests import pages
from tests.faults.cluster import Cluster
from tests.faults.conftest import cluster  # noqa: F401  # a fixture
from tests.integration.service.web_server import web_server
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
