"""PostgreSQL is away while jobs end, or the target of the hook is. It comes true when that is back.

JOBS and AWAY (seconds) in the environment make it larger; the issue of it asks for

    JOBS=1000 AWAY=60 make test ARGS="-n 0 -s tests/faults/test_jobs_and_outages.py"
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.jobs.nodes import TTL_SECONDS
from harbor_refresh.tasks.models.job import Node
from tests import servers
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.serving import serving
from tests.standing_still import standing_still
from tests.waiting import slowness, wait_for

JOBS = int(os.environ.get("JOBS", "100"))
AWAY_SECONDS = float(os.environ.get("AWAY", "4"))
#: In a minute all is right again, on a machine that has nothing else to do.
SOON_SECONDS = 60
#: Of both workers.
PROCESSES = 4


@pytest.fixture
def workers(cluster: Cluster, worker: Callable[..., Member]) -> Callable[..., list[Member]]:
    def begin(**env: str) -> list[Member]:
        cluster.beat()
        return [worker(name, **env) for name in "ab"]

    return begin


@pytest.fixture
def postgres_runs_again() -> Iterator[None]:
    yield
    if not servers.postgres.running:
        servers.postgres.start()


class Target(ThreadingHTTPServer):
    """The hook's other side: it applies what it gets, as an intake would; or says what it was told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Intake)
        self.answer = 200
        self.answers: Counter[int] = Counter()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Workers that are killed at the end of a test hang up in the middle of a line."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/service/notifications/tasks"


class Intake(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Target

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answer
        if answer == 200:
            told = body["status"], body["metadata"]["revision"], body.get("status_message")
            report([Report(int(self.path.rsplit("/", 1)[1]), *told)])
        self.server.answers[answer] += 1
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def finish(self) -> None:
        connections.close_all()
        super().finish()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def target(database: str) -> Iterator[Target]:
    target = Target()
    with serving(target):
        yield target


def started() -> Execution:
    """Half of its jobs end by themselves. The others hold on, so that they are not done before the fault comes,
    however slow this process is."""
    half = JOBS // 2
    jobs = [team.copy.s(str(number), 0.1) for number in range(half)]
    return start("SCAN", jobs=[*jobs, *(team.held.s(str(number)) for number in range(half, JOBS))])


def let_end(log: Path) -> None:
    for number in range(JOBS // 2, JOBS):
        log.with_name(f"{number}.1").touch()


def runs(log: Path) -> list[str]:
    """The name of the job of each run that has begun."""
    return [line.split()[1] for line in log.read_text().splitlines()]


def all_right_again(execution: Execution, log: Path, began: float) -> None:
    """Soon after `began`; each job was done once."""

    def is_right() -> bool:
        execution.refresh_from_db()
        return execution.status == "Success"

    left = SOON_SECONDS * slowness() - (time.monotonic() - began)
    wait_for(is_right, "the execution to be Success", seconds=left)
    assert Counter(execution.tasks.values_list("status", "run_count")) == {("Success", 0): JOBS}
    assert Counter(runs(log)) == Counter(str(number) for number in range(JOBS))
    print(f"{JOBS} jobs, away {AWAY_SECONDS:g} s: right {time.monotonic() - began:.1f} s after it is back")  # noqa: T201


def test_while_postgresql_is_away_jobs_end_and_none_begins_and_none_is_run_again_for_it(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path, postgres_runs_again: None
) -> None:
    first, _ = workers()
    execution = started()
    wait_for(lambda: log.read_text().count("held") == PROCESSES, "a job of each process to hold on", log=first.log)
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")  # which puts their begins on disk
    connection.close()
    servers.postgres.kill()
    stopped, begun = time.monotonic(), runs(log)
    let_end(log)
    wait_for(
        lambda: time.monotonic() - stopped > AWAY_SECONDS, "it to be away for as long", seconds=AWAY_SECONDS + 1
    )
    assert runs(log) == begun, "it is not known whether they have ended"
    servers.postgres.start()
    all_right_again(execution, log, time.monotonic())
    holds()


@pytest.mark.slow
def test_jobs_that_began_as_postgresql_crashed_end(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path, postgres_runs_again: None
) -> None:
    """The last begins were not on disk, so these jobs are sent again."""
    first, _ = workers()
    execution = start("SCAN", jobs=[team.copy.s(str(number), 0.02) for number in range(JOBS)])
    for crash in (1, 2, 3):
        wait_for(lambda crash=crash: len(runs(log)) > crash * JOBS / 4, "some to run", log=first.log)
        connection.close()
        servers.postgres.kill()
        servers.postgres.start()
    assert execution.wait(timeout=SOON_SECONDS * slowness()) == "Success"
    assert {*runs(log)} == {str(number) for number in range(JOBS)}
    holds()


@pytest.mark.slow
def test_a_postgresql_that_stands_still_makes_no_node_dead_and_no_job_run_twice(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path
) -> None:
    """It does so for four times the ttl of a node. The first heartbeats come before the second look."""
    workers()
    execution = started()
    wait_for(lambda: log.read_text().count("held") == PROCESSES, "a job of each process to hold on")
    nodes = set(Node.objects.values_list("pk", flat=True))
    connection.close()
    with standing_still(servers.postgres):
        let_end(log)
        time.sleep(4 * TTL_SECONDS)  # for so long it answers nothing
    all_right_again(execution, log, time.monotonic())
    assert set(Node.objects.values_list("pk", flat=True)) == nodes
    holds()


@pytest.mark.slow
def test_jobs_end_while_the_hook_answers_500_and_none_is_run_again_for_it(
    workers: Callable[..., list[Member]], holds: Callable[..., None], log: Path, target: Target
) -> None:
    first, _ = workers(REFRESH_REPORT_URL=target.url)
    execution = started()
    wait_for(lambda: target.answers[200], "some to be reported", log=first.log)
    target.answer = 500
    broke = time.monotonic()
    let_end(log)
    patience = AWAY_SECONDS + 300
    wait_for(lambda: len(runs(log)) == JOBS, "all to be done without it", seconds=patience, log=first.log)
    wait_for(lambda: time.monotonic() - broke > AWAY_SECONDS, "it to be so for as long", seconds=AWAY_SECONDS + 1)
    wait_for(lambda: target.answers[500] > 0, "a report to be refused", log=first.log)
    target.answer = 200
    all_right_again(execution, log, time.monotonic())
    holds()
