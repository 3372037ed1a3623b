"""docs/howto/job_service_hook.md: its examples run against the service, as a runner copies them."""

import shutil
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Task
from tests import pages
from tests.integration.executions.hook_requests import SECRET
from tests.integration.redis_state import Redis
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
