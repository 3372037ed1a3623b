"""The status hook over real HTTP: its address, the size of a body, and the mark; and the examples of
docs/howto/job_service_hook.md, as a runner copies them."""

import shutil
from collections.abc import Iterator

import httpx2
import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Task
from tests import pages
from tests.integration.executions.hook_requests import PATH, SECRET, as_bytes, wire
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.service.web_server import web_server
from tests.terminal import ran

PAGE = pages.read("docs/howto/job_service_hook.md")


@pytest.fixture
def service(database: None, redis: Redis, settings: Settings) -> Iterator[str]:
    settings.REFRESH_HARBOR_SECRET = SECRET
    with web_server() as url:
        yield url


def task() -> Task:
    execution = create(NewExecution("RETENTION", tasks=[NewTask("87bbdee19bed5ce09c48a149")]))
    return Task.objects.get(execution=execution)


def pointed_at(service: str, one: Task, text: str) -> str:
    mine = text.replace("tasks/7", f"tasks/{one.pk}")
    return mine.replace("https://refresh.example", service)


def run(*argv: str, **environment: str) -> str:
    done = ran(argv, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_report_by_curl_is_taken(service: str) -> None:
    assert shutil.which("curl"), "the example of the page needs curl"
    one = task()
    text = pointed_at(service, one, pages.code(PAGE, "sh"))
    assert run("sh", "-eu", "-c", text, SECRET=SECRET, no_proxy="*").startswith("HTTP/1.1 200 OK")
    one.refresh_from_db()
    assert (one.status, one.status_revision) == ("Running", 1_731_492_000)


def test_an_address_without_an_id_marks_and_a_body_that_is_too_large_is_refused(
    service: str, redis: Redis
) -> None:
    execution = create(NewExecution("TEST", tasks=[NewTask("j")]))
    headers = {"Authorization": f"Harbor-Secret {SECRET}", "Content-Type": "application/json"}
    with httpx2.Client(base_url=service, headers=headers, timeout=30) as runner:  # one connection that stays open
        assert runner.post(PATH.rstrip("/"), content=as_bytes(wire("j"))).status_code == 200
        assert whole_redis(redis)["queue:v2"] == {f"{execution.pk}:TEST"}
        assert runner.post(f"{PATH}1", content=b" " * 1_000_001).status_code == 413
        assert runner.post(f"{PATH}1", content=as_bytes(wire("j", "Success"))).status_code == 200
