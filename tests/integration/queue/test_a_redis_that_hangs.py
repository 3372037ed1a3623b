"""A Redis that hangs holds a report, or a page of the admin, for one verb: two attempts, and no more.

Attempts are counted, not seconds: each but the first is a new connection, and so is the first of a client that has
none yet.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from harbor_refresh.executions.lifecycle import reports
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report
from harbor_refresh.executions.management.output import Failed
from harbor_refresh.executions.models import Execution
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.pipeline import marks
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.connection import WaitsOnce, connect
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.admin_client import act, signed_in
from tests.integration.redis_state import Redis, only_waits_take_time
from tests.integration.sample_executions import delete
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "queue")

ADMIN = "/admin/harbor_executions"
QUEUE = "/admin/harbor_tasks/pause/"
TIMEOUT_SECONDS = 0.5


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many connections are made to it until it is asked for; from then on it answers."""
    only_waits_take_time(monkeypatch)
    with EmbeddedRedis(tmp_path / "redis") as server, Redis.from_url(server.url) as operator:
        clients = [connect(server.url, TIMEOUT_SECONDS, tries=tries) for tries in (4, 1)]
        made: Any = ExecutionQueue(refresh_settings(), *clients)
        for name in ("_redis", "_single"):
            monkeypatch.setattr(execution_queue(), name, getattr(made, name))
        before = operator.info("stats")["total_connections_received"]
        assert server.pid
        os.kill(server.pid, signal.SIGSTOP)

        def connections() -> int:
            os.kill(server.pid or 0, signal.SIGCONT)
            operator.ping()  # it may answer this before it accepts the connections that wait, but nothing after it
            return int(operator.info("stats")["total_connections_received"] - before)

        yield connections
        os.kill(server.pid, signal.SIGCONT)
        for client in clients:
            client.close()


@pytest.fixture
def execution() -> Execution:
    """With a job that has not ended; and beside it another, in quarantine."""
    other = start("SCAN", [[NewJob("a.job", job_id="b")]])
    quarantine([other.pk], 5)
    return start("SCAN", [[NewJob("a.job", job_id="a")]])


def task_of(execution: Execution) -> int:
    return int(execution.tasks.get().pk)


def stop(admin: Client, execution: Execution) -> None:
    act(admin, f"{ADMIN}/execution/", "stop", list(Execution.objects.values_list("pk", flat=True)))
    assert set(Execution.objects.values_list("status", flat=True)) == {"Stopped"}


def look_at_queue(admin: Client, execution: Execution) -> None:
    page = admin.get(QUEUE)
    assert (page.status_code, "Redis: TimeoutError" in page.content.decode()) == (200, True)


def look_by_command(admin: Client, execution: Execution) -> None:
    with pytest.raises(Failed, match="Redis is down"):
        call_command("harbor", "why", str(execution.pk))


def ask_many_times(admin: Client, execution: Execution) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        marked = [marks.mark([f"{number}:SCAN"]) for number in range(5)]
        return HttpResponse(str(any(marked)))

    assert WaitsOnce(view)(RequestFactory().get("/")).content == b"False"


def report(admin: Client, execution: Execution) -> None:
    assert reports.report([Report(task_of(execution), "Running", 1)]).applied == 1


def mark(admin: Client, execution: Execution) -> None:
    assert not marks.mark([f"{execution.pk}:SCAN"])


@pytest.mark.parametrize(
    "ask",
    [
        *(stop, report, mark, look_at_queue, look_by_command, ask_many_times),
    ],
)
def test_a_call_to_a_redis_that_hangs_waits_for_two_attempts(
    execution: Execution, hanging: Callable[[], int], ask: Callable[[Client, Execution], None]
) -> None:
    ask(signed_in(superuser=True), execution)
    assert hanging() == 2


def test_the_pages_of_executions_and_jobs_and_a_delete_ask_no_redis(
    execution: Execution, hanging: Callable[[], int]
) -> None:
    admin = signed_in(superuser=True)
    addresses = (
        f"{ADMIN}/execution/{execution.pk}/change/",
        f"{ADMIN}/execution/{execution.pk}/running/",
        f"{ADMIN}/task/{task_of(execution)}/change/",
        "/admin/harbor_tasks/job/",
    )
    assert [admin.get(one).status_code for one in addresses] == [200] * 4
    assert delete([execution.pk]) == 1
    assert hanging() == 0
