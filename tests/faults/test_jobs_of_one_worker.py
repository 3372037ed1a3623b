"""What jobs do in a sound worker: one serves all of these tests, and nothing is left in progress between them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import chain
from pytest_django import DjangoDbBlocker
from redis import Redis

from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.conftest import fresh_database
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.test_jobs import ends, statuses


@pytest.fixture(scope="module")
def member(
    redis_server: None, template: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Member]:
    folder = tmp_path_factory.mktemp("worker")
    with fresh_database(template, django_db_blocker) as name, Redis.from_url(servers.redis.url) as client:
        client.flushall()
        cluster = Cluster(name, folder)
        yield cluster.worker(include=["tests.faults.jobs"], JOBS_LOG=str(folder / "jobs.txt"))
        cluster.end()


@pytest.fixture
def redis(member: Member) -> Iterator[Redis]:
    """As the test before has left it."""
    with Redis.from_url(servers.redis.url) as client:
        yield client


@pytest.fixture
def log(member: Member) -> Path:
    path = member.log.with_name("jobs.txt")
    path.write_text("")
    return path


@pytest.fixture(autouse=True)
def all_is_well(holds: Callable[..., None], log: Path) -> Iterator[None]:
    """After each test K1 to K5, and no job is left in progress."""
    yield
    holds()


def test_a_job_that_asks_for_another_try_keeps_its_execution_running(member: Member, log: Path) -> None:
    execution = start("SCAN", jobs=[team.flaky.s("a", 2)])
    ends(execution, "Success", member)
    assert log.read_text() == "flaky a\n" * 3
    task = execution.tasks.get()
    assert (task.status, task.status_revision, task.run_count) == ("Success", 2, 2)
    changes = execution.history.order_by("revision").values_list("to_status", flat=True)
    assert "Error" not in changes


def test_the_rest_of_a_broken_chain_is_stopped_and_tried_again_with_it(member: Member, log: Path) -> None:
    execution = start("SCAN", jobs=[chain(team.fail.s("a"), team.copy.si("b"), team.copy.si("c"))])
    ends(execution, "Error", member)
    assert statuses(execution) == {"Error": 1, "Stopped": 2}
    Job.objects.filter(task__execution=execution.pk, name="tests.fail").update(name="tests.copy")
    assert execution.retry_failed() == 3
    ends(execution, "Success", member)
    assert log.read_text().splitlines() == ["fail a", "copy a", "copy b", "copy c"]
