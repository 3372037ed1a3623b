"""/metrics over the real service: what it says is what the database and Redis say, and who may read it."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2
import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import StatusChange, Task
from harbor_refresh.executions.news import counters
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.web import flights, probes
from harbor_refresh.web.flights import Flight
from harbor_refresh.web.metrics import COUNTERS, GAUGES, HISTOGRAMS
from harbor_refresh.web.probes import OF_A_PROXY
from tests.created import create_many
from tests.integration.executions.api.api_client import token
from tests.integration.scrapes import Scrape, scraped
from tests.integration.service.web import serving
from tests.waiting import slowness

pytestmark = pytest.mark.usefixtures("database", "redis")


def answered(**headers: str) -> Any:
    return Client().get("/metrics", headers=headers)


def scrape() -> Scrape:
    answer = answered(Authorization=f"Bearer {token(Scope.READ)}")
    assert answer.status_code == 200
    return scraped(answer.content.decode())


def test_what_is_counted_is_what_the_rows_say() -> None:
    ids = [one.pk for one in create_many(NewExecution("TEST", tasks=[NewTask()] * 2) for _ in range(5))]
    tasks = list(Task.objects.order_by("pk").values_list("pk", flat=True))
    report([Report(tasks[0], "Running", 1), Report(tasks[0], "Running", 1), Report(7777, "Success", 1)])
    report([Report(task, "Success", 1) for task in tasks])
    refresh(ids)
    refresh(ids)
    stop(ids[0])
    counters.kept.write()
    found = scrape()
    assert {key: value for key, value in found.items() if key[0].endswith("_total") and value} == {
        ("harbor_refresh_reports_total", "result=applied,source=code"): 11,
        ("harbor_refresh_reports_total", "result=unchanged,source=code"): 1,
        ("harbor_refresh_reports_total", "result=refused,source=code"): 1,
        ("harbor_refresh_refreshes_total", "result=changed"): StatusChange.objects.count(),
        ("harbor_refresh_refreshes_total", "result=unchanged"): 6,
    }
    assert StatusChange.objects.count() == 5
    assert found["harbor_refresh_report_to_true_seconds_count", ""] == 5
    assert found["harbor_refresh_report_to_true_seconds_bucket", "le=+Inf"] == 5
    assert found["harbor_refresh_refresh_seconds_count", ""] == 3
    assert found["harbor_refresh_refresh_seconds_sum", ""] > 0


def test_every_series_is_there_before_anything_was_counted() -> None:
    found = scrape()
    expected = {(one.name, series) for one in COUNTERS for _, series in one.series()}
    assert {key for key in found if key[0].endswith("_total")} == expected
    assert {found[key] for key in expected} == {0}
    assert {f"{one.name}_count" for one in HISTOGRAMS} <= {name for name, _ in found}


def test_what_is_not_known_is_left_out_and_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new service has no tick, no reconcile and no beat yet."""
    names = {name for name, _ in scrape()}
    known = {one.name for one in GAUGES}
    assert "harbor_refresh_backlog" in names
    assert not {"harbor_refresh_last_tick_age_seconds", "harbor_refresh_beat_age_seconds"} & names
    assert known >= {name for name in names if not name.endswith(("_total", "_bucket", "_sum", "_count"))}


def test_a_caller_needs_the_scope_to_read() -> None:
    found = {
        "nothing": answered().status_code,
        "a wrong token": answered(Authorization="Bearer hr_" + "x" * 43).status_code,
        "another scope": answered(Authorization=f"Bearer {token(Scope.REPORT, Scope.MANAGE)}").status_code,
        "the scope": answered(Authorization=f"Bearer {token(Scope.READ)}").status_code,
        "another method": Client().post("/metrics").status_code,
    }
    assert found == {
        "nothing": 401,
        "a wrong token": 401,
        "another scope": 403,
        "the scope": 200,
        "another method": 405,
    }


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("10.1.2.3", {}, 200),
        ("fd00::7", {}, 200),
        ("::ffff:10.1.2.3", {}, 200),
        ("10.2.0.1", {}, 401),
        ("", {}, 401),
        ("10.1.2.3", {"X-Forwarded-For": "10.1.2.3"}, 401),
        ("10.1.2.3", {"Forwarded": "for=10.1.2.3"}, 401),
        ("10.1.2.3", {"X-Real-IP": "10.1.2.3"}, 401),
        ("10.1.2.3", {"X-Forwarded-Proto": "https"}, 401),
    ],
)
def test_a_network_opens_the_page_to_its_own_connections_alone(
    settings: Settings, address: str, headers: dict[str, str], status: int
) -> None:
    settings.REFRESH_METRICS_NETWORKS = ("10.1.0.0/16", "fd00::/8")
    assert Client(REMOTE_ADDR=address).get("/metrics", headers=headers).status_code == status


def test_refused_requests_are_counted_by_door_and_status() -> None:
    client = Client()
    for path in ("/api/v1/queue", "/api/v1/queue", "/metrics"):
        client.get(path)
    client.post("/service/notifications/tasks/1", "{}", content_type="application/json")
    counters.kept.write()
    refused = {
        series: count for (metric, series), count in counters.totals().items() if metric == "requests_refused"
    }
    assert refused == {"source=api,status=401": 2, "source=metrics,status=401": 1, "source=hook,status=401": 1}


def test_probes_are_answered_under_any_host_and_without_https(settings: Settings) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["harbor.example"], True
    for path in ("/healthz", "/readyz"):
        assert Client().get(path, headers={"Host": "10.9.8.7:8000"}).status_code == 200, path
    assert Client().get("/", headers={"Host": "10.9.8.7:8000"}).status_code == 400


def test_readiness_names_redis_and_depends_on_postgresql_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Client().get("/readyz").json() == {"ready": True, "database": "ok", "redis": "ok"}
    monkeypatch.setattr(probes, "redises", Flight(lambda: "Redis: it is gone", str))
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["redis"]) == (200, "Redis: it is gone")
    monkeypatch.setattr(probes, "databases", Flight(lambda: "PostgreSQL: it is gone", str))
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert answer.json()["database"] == "PostgreSQL: it is gone"
    assert Client().get("/healthz").status_code == 200


def test_readiness_tells_no_reason_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "redises", Flight(lambda: "Redis: 10.1.2.3 is gone", str))
    monkeypatch.setattr(probes, "databases", Flight(lambda: "PostgreSQL: 10.1.2.4 is gone", str))
    for name in OF_A_PROXY:
        answer = Client().get("/readyz", headers={name: "for=1.2.3.4"})
        assert answer.json() == {"ready": False, "database": "down", "redis": "down"}


def test_a_database_without_our_tables_is_not_ready() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'harbor_executions'")
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert "are not applied to the database: harbor_executions." in answer.json()["database"]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A question that is never answered, until the test ends."""
    end = threading.Event()
    asked: list[int] = []

    def ask() -> Any:
        asked.append(1)
        end.wait(60)

    monkeypatch.setattr(flights, "SECONDS", 0.05)
    yield ask, asked
    end.set()


def test_a_server_that_hangs_is_asked_once_however_many_wait_for_it(hanging: Any) -> None:
    ask, asked = hanging
    flight = Flight(ask, lambda: "late")
    assert [flight.answer() for _ in range(3)] == ["late"] * 3
    assert len(asked) == 1


class LateAnswer(Future[Any]):
    """An answer that comes when the wait for it has just ended."""

    def result(self, timeout: float | None = None) -> Any:
        found = super().result()
        if timeout is not None:
            raise TimeoutError
        return found


def test_an_answer_that_comes_when_the_wait_ends_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "Future", LateAnswer)
    assert Flight(lambda: "answer", lambda: "late").answer() == "answer"


def test_a_question_whose_thread_is_refused_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    flight = Flight(lambda: "answer", lambda: "late")
    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.start", Mock(side_effect=RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start"):
            flight.answer()
    assert flight.answer() == "answer"


def test_a_database_that_hangs_costs_its_values_and_no_more_than_the_patience(
    hanging: Any, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.REFRESH_METRICS_NETWORKS = ("127.0.0.1/32",)
    for name in ("looks", "counts"):
        monkeypatch.setattr(probes, name, Flight(hanging[0], getattr(probes, name)._late))
    found = scraped(answered().content.decode())
    assert {key: value for key, value in found.items() if key[0] == "harbor_refresh_server_up"} == {
        ("harbor_refresh_server_up", "server=database"): 0,
        ("harbor_refresh_server_up", "server=redis"): 1,
        ("harbor_refresh_server_up", "server=broker"): 1,
    }
    assert {name for name, _ in found} == {"harbor_refresh_server_up"}


def test_a_redis_that_hangs_costs_its_values_and_a_moment(database: str, tmp_path: Path) -> None:
    """The deadline is that of a scrape: Prometheus waits ten seconds."""
    log = tmp_path / "gunicorn.log"
    with EmbeddedRedis(tmp_path / "redis") as server, serving(database, log, REDIS_URL=server.url) as url:
        headers = {"Authorization": f"Bearer {token(Scope.READ)}"}
        assert server.pid
        os.kill(server.pid, signal.SIGSTOP)
        try:
            seconds = 10 * slowness()
            answer = httpx2.get(f"{url}/metrics", headers=headers, trust_env=False, timeout=seconds)
            ready = httpx2.get(f"{url}/readyz", trust_env=False, timeout=seconds)
        finally:
            os.kill(server.pid, signal.SIGCONT)
    found = scraped(answer.text)
    up = {labels: value for (name, labels), value in found.items() if name == "harbor_refresh_server_up"}
    assert up == {"server=redis": 0, "server=broker": 0, "server=database": 1}
    assert ("harbor_refresh_backlog", "") not in found
    assert found["harbor_refresh_quarantined", ""] == 0
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    assert ready.json()["redis"].startswith("Redis is down, or does not answer in time. Redis: ")
