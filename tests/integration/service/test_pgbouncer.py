"""A PgBouncer in transaction mode before the database: what is said without the setting, and all work with it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from redis import Redis

from examples.simulation.invariants import violations
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution
from tests import servers
from tests.faults.cluster import Cluster
from tests.integration.admin_client import signed_in
from tests.integration.command_output import manage
from tests.integration.executions.api.api_client import token
from tests.integration.executions.hook_requests import PATH, SECRET, wire
from tests.integration.sample_executions import drifted, made
from tests.integration.scrapes import scraped
from tests.integration.service.pooler import POOLED, PgBouncer, folder_for
from tests.integration.service.web import serving
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

Pooler = Callable[..., PgBouncer]


@pytest.fixture
def pooler(database: str) -> Iterator[Pooler]:
    started: list[PgBouncer] = []
    directory = folder_for(database)

    def start(ignores: str = "") -> PgBouncer:
        started.append(PgBouncer(directory, ignores))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def role(database: str) -> Iterator[str]:
    """A role of its own, because ALTER ROLE outlives the database."""
    with psycopg.connect(servers.postgres.url_for(database), autocommit=True) as server:
        server.execute("CREATE ROLE refresher LOGIN SUPERUSER")
        yield "refresher"
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'refresher'")
        server.execute("DROP OWNED BY refresher")
        server.execute("DROP ROLE refresher")


def doctor(url: str, *only: str, **environment: str) -> dict[str, list[dict[str, Any]]]:
    """The problems that it finds, by check."""
    words = [word for name in only for word in ("--only", name)]
    ran = manage("doctor", "--json", *words, DATABASE_URL=url, **environment)
    return {one["check"]: one["problems"] for one in json.loads(ran.stdout)["checks"] if one["problems"]}


def test_a_pooler_that_refuses_our_options_is_not_called_down(pooler: Pooler, database: str, redis: Redis) -> None:
    url = pooler().url(database)
    ran = manage("harbor", "status", DATABASE_URL=url)
    assert ran.returncode == 1
    assert "unsupported startup parameter: options" in ran.stderr
    assert "Set DATABASE_POOLED=true" in ran.stdout
    assert "PostgreSQL is down" not in ran.stdout + ran.stderr
    (problem,) = doctor(url, "database")["database.reachable"]
    assert problem["what"].startswith("A PgBouncer refuses the options of the connection.")
    assert f"""ALTER ROLE "postgres" IN DATABASE "{database}" SET lock_timeout = '5s';""" in problem["todo"]


def test_a_pooler_that_swallows_our_options_is_found(pooler: Pooler, database: str) -> None:
    found = doctor(pooler(ignores="options").url(database), "database")
    assert set(found) == {"database.timeouts"}


def test_what_the_doctor_says_to_type_is_enough(pooler: Pooler, database: str, role: str, redis: Redis) -> None:
    bouncer = pooler()
    url = bouncer.url(database, role)
    first, second = doctor(url, "database", **POOLED)["database.timeouts"]
    with psycopg.connect(servers.postgres.url_for(database), autocommit=True) as server:
        for statement in re.findall(r"ALTER ROLE [^;]+;", first["todo"]):
            server.execute(statement.encode())
    assert second["todo"] == first["todo"]
    bouncer.administer("RECONNECT")
    wait_for(lambda: "database.timeouts" not in doctor(url, "database", **POOLED), "the new sessions")
    assert doctor(url, "database", "tables", **POOLED) == {}


LIST = "/admin/harbor_executions/execution/"
#: Some of its pages, the dashboard first.
PAGES = ("/admin/", "/admin/live", LIST, "/admin/harbor_executions/task/", "/admin/harbor_tasks/pause/")


def test_all_programs_work_behind_it(pooler: Pooler, database: str, redis: Redis, tmp_path: Path) -> None:
    """Each thread of the web process keeps a connection to the pooler, and each transaction there gets another
    session. An execution whose mark was lost is found by reconcile."""
    env = {"DATABASE_URL": pooler().url(database), **POOLED}
    lost = drifted()
    cluster = Cluster(database, tmp_path)
    cluster.env |= env
    cookies = {"sessionid": signed_in(superuser=True).cookies["sessionid"].value}
    program = {"Authorization": f"Bearer {token(Scope.REPORT, Scope.READ, Scope.MANAGE)}"}
    runner = {"Authorization": f"Harbor-Secret {SECRET}"}
    by_api = [made(2) for _ in range(10)]
    by_hook = [create(NewExecution("TEST", tasks=[NewTask(f"job {number}")])) for number in range(10)]
    log = tmp_path / "web.log"
    try:
        cluster.worker(concurrency=2)
        cluster.beat()
        with (
            serving(database, log, **env, REFRESH_HARBOR_SECRET=SECRET) as url,
            httpx2.Client(base_url=url, trust_env=False, timeout=120) as client,
        ):
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()) == (200, {"ready": True, "database": "ok", "redis": "ok"})
            for number, (_, tasks) in enumerate(by_api):
                reports = {"reports": [{"task_id": pk, "status": "Success"} for pk in tasks]}
                answer = client.post("/api/v1/reports", json=reports, headers=program)
                assert (answer.status_code, answer.json()["applied"]) == (200, 2), answer.text
                body = wire(f"job {number}", "Error", status_message="broken")
                assert client.post(f"{PATH}0", json=body, headers=runner).status_code == 200
            new = {"vendor_type": "TEST", "tasks": [{}]}
            created = client.post("/api/v1/executions", json=new, headers=program)
            assert created.status_code == 201, created.text
            third = created.json()["id"]
            stopped = client.post(f"/api/v1/executions/{third}/stop", headers=program)
            assert stopped.status_code == 200, stopped.text
            expected = {
                **{execution.pk: "Success" for execution, _ in by_api},
                **{execution.pk: "Error" for execution in by_hook},
                lost.pk: "Success",
                third: "Stopped",
            }
            wait_for(
                lambda: dict(Execution.objects.values_list("pk", "status")) == expected,
                "the reports to come true",
                log=cluster.members[0].log,
            )
            ran = manage("harbor", "repair", "refresh", "--all", "--yes", **env)
            assert (ran.returncode, ran.stderr) == (0, "")
            wait_for(lambda: not violations(), "K1 to K4 to hold", log=cluster.members[0].log)
            with httpx2.Client(base_url=url, trust_env=False, timeout=120, cookies=cookies) as person:
                pages = {page: person.get(page) for page in (*PAGES, f"{LIST}{third}/change/")}
            assert {page: answer.status_code for page, answer in pages.items()} == dict.fromkeys(pages, 200)
            shown = set(map(int, re.findall(rf"{LIST}(\d+)/change/", pages[LIST].text)))
            assert shown == set(expected)
            metrics = client.get("/metrics", headers=program)
            applied = {
                source: scraped(metrics.text)["harbor_refresh_reports_total", f"result=applied,source={source}"]
                for source in ("api", "hook")
            }
            assert applied == {"api": 20, "hook": 10}
    finally:
        cluster.end()
    assert "Traceback" not in cluster.logs() + log.read_text()
