"""The client while the service or the way to it fails: each report counts, in order, once."""

import threading
from collections.abc import Iterator

import pytest

from harbor_refresh import client as module
from harbor_refresh.client import Client
from harbor_refresh.executions.models import Execution
from harbor_refresh.local.ports import choose_port
from tests.integration.sample_executions import made
from tests.integration.service.client.rounds import after, numbered, state
from tests.integration.service.client.web import Web
from tests.proxy import LosesAnswers, Proxy
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def runs_again_for_the_next_test(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "LINGER", 0.05)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.2)
    yield
    web.start_if_down()


def client_of(web: Web, port: int = 0) -> Client:
    url = f"http://127.0.0.1:{port}" if port else web.url
    return Client(url, web.token, close_timeout=60.0)


def test_a_service_that_is_killed_in_the_middle_of_batches(web: Web) -> None:
    _, tasks = made(50)
    with client_of(web) as client:
        ended = threading.Event()

        def make() -> None:
            for number in range(10_000):
                client.report_many([numbered(tasks, number)])
            ended.set()

        maker = threading.Thread(target=make)
        maker.start()
        wait_for(lambda: client.counts["applied"], "reports to be applied")
        web.kill()
        wait_for(lambda: client._failures >= 3, "the client to notice it")
        web.start()
        maker.join(60)
        assert ended.is_set()
        client.flush(60)
        counts = client.counts
    assert state(tasks) == after(tasks, 10_000)
    assert counts["applied"] + counts["unchanged"] == 10_000


def test_answers_that_are_lost_after_the_service_has_applied_the_reports(web: Web) -> None:
    _, tasks = made(20)
    proxy = LosesAnswers(web.port, to_lose=3)
    with client_of(web, proxy.port) as client:
        client.report_many(numbered(tasks, number) for number in range(200))
        client.flush(60)
        counts = client.counts
    proxy.close()
    assert state(tasks) == after(tasks, 200)
    assert (counts, proxy.to_lose) == ({"applied": 0, "unchanged": 200, "refused": 0}, 0)


def test_an_execution_is_created_once_though_the_answers_are_lost(web: Web) -> None:
    proxy = LosesAnswers(web.port, to_lose=2)
    with client_of(web, proxy.port) as client:
        created = client.create("ONCE", tasks=[{}, {}])
        added = client.add_tasks(created["id"], [{"job_id": "third"}])
        proxy.to_lose = 1
        again = client.add_tasks(created["id"], [{"job_id": "fourth"}])
    proxy.close()
    execution = Execution.objects.get(vendor_type="ONCE")
    assert (created["id"], proxy.to_lose) == (execution.pk, 0)
    assert [*created["task_ids"], *added, *again] == [one.pk for one in execution.tasks.order_by("pk")]


@pytest.fixture
def way(web: Web) -> Iterator[Proxy]:
    """A way to the service that is closed until a test opens it."""
    proxy = Proxy(choose_port())
    yield proxy
    proxy.close()


def test_wait_outlasts_a_service_that_is_down(web: Web, way: Proxy) -> None:
    execution, (task,) = made(1)
    found = []
    with client_of(web, way.port) as client:
        waiter = threading.Thread(target=lambda: found.append(client.wait(execution.pk, 60)["status"]))
        waiter.start()
        client.report(task, "Error", message="the disk is full")
        wait_for(lambda: client._failures >= 2, "the client to notice it")
        way.target = web.port
        waiter.join(60)
    assert found == ["Error"]
