"""The client while the service, a runner, or the way between them fails: each report counts, in order, once."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harbor_refresh import client as module
from harbor_refresh.client import Client
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.local.ports import choose_port
from tests.integration.sample_executions import made
from tests.integration.service.client.rounds import Runner, after, state
from tests.integration.service.client.runner import numbered
from tests.integration.service.client.web import Web
from tests.proxy import LosesAnswers, Proxy
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def runs_again_for_the_next_test(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "LINGER", 0.05)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.2)
    yield
    web.start_if_away()


def client_of(web: Web, spool: Path | None = None, port: int = 0) -> Client:
    url = f"http://127.0.0.1:{port}" if port else web.url
    return Client(url, web.token, spool, close_timeout=60.0)


@pytest.mark.slow
def test_ten_thousand_reports_made_while_the_service_is_away_and_their_runner_is_killed(
    web: Web, spool: Path
) -> None:
    _, tasks = made(200)
    web.kill()
    runner = Runner(web.url, web.token, spool, tasks, 1_000_000)
    wait_for(lambda: runner.made >= 3_000, "the runner to make reports")
    runner.kill()
    known = runner.made
    total = max(10_000, known + 1_000)
    with client_of(web, spool) as client:
        client.report_many(numbered(tasks, number) for number in range(known, total))
        wait_for(lambda: client.failures >= 3, "the client to notice that the service is away")
        web.start()
        client.flush(60)
        counts = client.counts
    assert state(tasks) == after(tasks, total)
    # The runner may not know of its last report, so that report is made twice. And a request may reach the service
    # as it starts and be answered too late: its reports are sent again, and change nothing.
    assert counts["refused"] == 0
    assert counts["applied"] + counts["unchanged"] in (total, total + 1)
    assert spool.read_bytes() == b""


def test_a_runner_that_is_killed_while_it_sends_leaves_the_rest_to_the_next(web: Web, spool: Path) -> None:
    _, tasks = made(50)
    runner = Runner(web.url, web.token, spool, tasks, 10_000)
    wait_for(lambda: Task.objects.filter(pk__in=tasks, run_count__gt=0).exists(), "the first batch to be applied")
    runner.kill()
    known = runner.made
    with client_of(web, spool) as client:
        client.flush(60)
    assert state(tasks) in (after(tasks, known), after(tasks, known + 1))


def test_a_service_that_is_killed_in_the_middle_of_batches(web: Web, spool: Path) -> None:
    _, tasks = made(50)
    with client_of(web, spool) as client:
        ended = threading.Event()

        def make() -> None:
            for number in range(10_000):
                client.report_many([numbered(tasks, number)])
            ended.set()

        maker = threading.Thread(target=make)
        maker.start()
        wait_for(lambda: client.counts["applied"], "reports to be applied")
        web.kill()
        wait_for(lambda: client.failures >= 3, "the client to notice it")
        web.start()
        maker.join(60)
        assert ended.is_set()
        client.flush(60)
        counts = client.counts
    assert state(tasks) == after(tasks, 10_000)
    assert counts["applied"] + counts["unchanged"] == 10_000


def test_answers_that_are_lost_after_the_service_has_applied_the_reports(web: Web, spool: Path) -> None:
    _, tasks = made(20)
    proxy = LosesAnswers(web.port, to_lose=3)
    with client_of(web, spool, proxy.port) as client:
        client.report_many(numbered(tasks, number) for number in range(200))
        client.flush(60)
        counts = client.counts
    proxy.close()
    assert state(tasks) == after(tasks, 200)
    assert (counts, proxy.to_lose) == ({"applied": 0, "unchanged": 200, "refused": 0}, 0)


def test_an_execution_is_created_once_though_the_answers_are_lost(web: Web) -> None:
    proxy = LosesAnswers(web.port, to_lose=2)
    with client_of(web, port=proxy.port) as client:
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


def test_wait_outlasts_a_service_that_is_away(web: Web, way: Proxy) -> None:
    execution, (task,) = made(1)
    found = []
    with client_of(web, port=way.port) as client:
        waiter = threading.Thread(target=lambda: found.append(client.wait(execution.pk, 60)["status"]))
        waiter.start()
        client.report(task, "Error", message="the disk is full")
        wait_for(lambda: client.failures >= 2, "the client to notice it")
        way.target = web.port
        waiter.join(60)
    assert found == ["Error"]


def test_memory_outlasts_an_outage_as_well(web: Web, way: Proxy) -> None:
    _, tasks = made(5)
    with client_of(web, port=way.port) as client:
        client.report_many(numbered(tasks, number) for number in range(100))
        wait_for(lambda: client.failures >= 2, "the client to notice it")
        way.target = web.port
    assert state(tasks) == after(tasks, 100)
    assert client.counts == {"applied": 100, "unchanged": 0, "refused": 0}
