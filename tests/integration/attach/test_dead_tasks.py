"""`attach dead-tasks`: tasks whose job is gone in Harbor's job service."""

import json
import time
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.management.attach import dead_tasks
from tests.harbor import rows
from tests.harbor.samples import everything
from tests.integration.command_output import data, failing

PREFIX = "{harbor_job_service_namespace}:"
RUN = 1_787_292_000

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def job_service(redis: Redis) -> Redis:
    """A Redis in which a job service is alive."""
    redis.sadd(f"{PREFIX}worker_pools", "pool")
    redis.hset(f"{PREFIX}worker_pools:pool", "heartbeat_at", int(time.time()))
    return redis


def address(redis: Redis) -> str:
    """As Harbor writes it."""
    known = redis.connection_pool.connection_kwargs
    place = f"{known.get('host', 'localhost')}:{known['port']}"
    return f"redis://{place}/{known.get('db', 0)}?idle_timeout_seconds=30"


def options(redis: Redis) -> tuple[str, str]:
    return "--job-service-redis", address(redis)


def stats(redis: Redis, job: str, status: str, revision: int = RUN, ago: int | None = None) -> None:
    """The stats of a job that changed last when its run began, unless `ago` says how many seconds ago."""
    values = {"id": job, "name": "REPLICATION", "kind": "Generic", "status": status, "revision": revision}
    changed = revision if ago is None else int(time.time()) - ago
    redis.hset(f"{PREFIX}job_stats:{job}", mapping={**values, "update_time": changed})


def task(status: str = "Running", **columns: Any) -> tuple[int, int]:
    """An execution with one task whose job is `job`, long unchanged unless the columns say otherwise."""
    of = rows.execution()
    return of, rows.task(of, status, **{"job_id": "job", **columns})


def status_of(pk: int) -> tuple[Any, ...]:
    return rows.asked(f"SELECT status, status_code, status_revision, run_count FROM task WHERE id = {pk}")[0]


@pytest.mark.parametrize(
    ("stored", "in_redis", "becomes"),
    [
        pytest.param("Running", None, "Error", id="its stats are gone"),
        pytest.param("Pending", None, "Error", id="it waits, and its stats are gone"),
        pytest.param("Running", ("Success", RUN), "Success", id="it succeeded and the report was lost"),
        pytest.param("Running", ("Error", RUN), "Error", id="it failed and the report was lost"),
        pytest.param("Running", ("Stopped", RUN + 5), "Stopped", id="a later run was stopped"),
        pytest.param("Running", ("Success", RUN - 5), None, id="only an earlier run has ended"),
        pytest.param("Running", ("Running", RUN), None, id="it runs"),
        pytest.param("Pending", ("Pending", RUN), None, id="it waits in a queue"),
        pytest.param("Pending", ("Scheduled", RUN), None, id="it is scheduled"),
        pytest.param("Running", ("Odd", RUN), None, id="its status is no word of the job service"),
    ],
)
def test_what_becomes_of_a_task(
    job_service: Redis, stored: str, in_redis: tuple[str, int] | None, becomes: str | None
) -> None:
    of, pk = task(stored)
    if in_redis:
        stats(job_service, "job", *in_redis)
    keys = {key: job_service.type(key) for key in job_service.scan_iter(f"{PREFIX}*")}
    before = everything()
    dry = data("attach", "dead-tasks", "--dry-run", *options(job_service))
    assert (dry["dead"], dry["ended"]) == (int(becomes is not None), 0)
    assert everything() == before
    done = data("attach", "dead-tasks", *options(job_service))
    assert (done["looked_at"], done["unfinished"], done["dead"], done["ended"]) == (1, 1, dry["dead"], dry["dead"])
    assert status_of(pk)[0] == (becomes or stored)
    assert {key: job_service.type(key) for key in job_service.scan_iter(f"{PREFIX}*")} == keys
    entries = AuditEntry.objects.filter(kind="task").values_list("verb", "target")
    assert list(entries) == ([("finish", str(pk))] if becomes else [])
    refresh([of])
    assert rows.stored(of, "status") == ((becomes or "Running"),)
    after = everything()
    assert data("attach", "dead-tasks", *options(job_service))["dead"] == 0
    assert everything() == after


@pytest.mark.parametrize("columns", [{"job_id": ""}, {"job_id": None}, {"update_time": "now"}])
def test_a_young_task_and_one_without_a_job_are_not_looked_at(job_service: Redis, columns: dict[str, Any]) -> None:
    _, pk = task(**columns)
    assert data("attach", "dead-tasks", *options(job_service))["unfinished"] == 0
    assert status_of(pk)[0] == "Running"


def test_a_task_without_a_revision_is_ended(job_service: Redis) -> None:
    _, pk = task(status_revision=None, run_count=None)
    assert data("attach", "dead-tasks", *options(job_service))["ended"] == 1
    assert status_of(pk) == ("Error", 3, 0, 0)


def test_a_task_of_a_periodic_policy_is_left(job_service: Redis) -> None:
    _, pk = task("Pending")
    job_service.zadd(f"{PREFIX}period:policies", {json.dumps({"id": "job", "cron_spec": "0 0 0 * * *"}): 1})
    assert data("attach", "dead-tasks", *options(job_service))["dead"] == 0
    assert status_of(pk)[0] == "Pending"


@pytest.mark.parametrize("heartbeat", [None, 0])
def test_a_redis_without_a_living_job_service_is_refused(redis: Redis, heartbeat: int | None) -> None:
    if heartbeat is not None:
        redis.sadd(f"{PREFIX}worker_pools", "pool")
        redis.hset(f"{PREFIX}worker_pools:pool", "heartbeat_at", heartbeat)
    _, pk = task()
    why = failing("attach", "dead-tasks", *options(redis))[1]
    assert "no job service of Harbor is alive in this Redis" in why
    assert status_of(pk)[0] == "Running"


def test_a_redis_that_does_not_answer_or_is_not_named_is_said() -> None:
    why = failing("attach", "dead-tasks", "--job-service-redis", "redis://127.0.0.1:1/2")[1]
    assert why.startswith("the Redis of Harbor's job service cannot be asked")
    assert "--job-service-redis URL" in failing("attach", "dead-tasks")[1]


@pytest.mark.usefixtures("job_service")
def test_an_error_of_our_own_is_not_blamed_on_the_job_service(redis: Redis) -> None:
    def fail(looked_at: int) -> None:
        raise ValueError("ours")

    task()
    with pytest.raises(ValueError, match="ours"):
        dead_tasks.end(address(redis), fail)


HOUR = 3600


def changed_ago(pk: int, seconds: int) -> None:
    """Let the last change of a task be so long ago."""
    rows.asked(
        f"UPDATE task SET update_time = (now() - interval '{seconds} s') AT TIME ZONE 'UTC' WHERE id = {pk}"
    )


@pytest.mark.parametrize(
    ("in_redis", "changed", "job_ended", "becomes"),
    [
        pytest.param("Success", HOUR + 60, HOUR + 60, "Success", id="its report was lost an hour ago"),
        pytest.param(
            "Success", HOUR - 60, HOUR + 60, "Running", id="its report was lost, and it changed just now"
        ),
        pytest.param("Success", 5 * HOUR, HOUR - 60, "Running", id="its job ended just now, a report may come"),
        pytest.param(None, 24 * HOUR + 60, 0, "Error", id="its stats are gone for a day"),
        pytest.param(None, 24 * HOUR - 60, 0, "Running", id="its stats are gone, and it changed within a day"),
    ],
)
def test_a_lost_report_is_taken_after_an_hour_and_a_gone_job_after_a_day(
    job_service: Redis, in_redis: str | None, changed: int, job_ended: int, becomes: str
) -> None:
    """The stats of a Success expire after a day, so a day would make it an Error."""
    _, pk = task()
    changed_ago(pk, changed)
    if in_redis:
        stats(job_service, "job", in_redis, ago=job_ended)
    data("attach", "dead-tasks", *options(job_service))
    assert status_of(pk)[0] == becomes


def test_the_message_and_the_log_of_actions_say_why(job_service: Redis) -> None:
    _, gone = task(job_id="job-a")
    _, lost = task(job_id="job-b")
    stats(job_service, "job-b", "Success")
    data("attach", "dead-tasks", *options(job_service))
    unknown = "The job service no longer knows this job, so its outcome is unknown: it may have succeeded."
    known = "The job service says Success; its report was lost."
    messages = rows.asked("SELECT id, status, status_message FROM task ORDER BY id")
    assert messages == [(gone, "Error", unknown), (lost, "Success", known)]
    entries = AuditEntry.objects.filter(kind="task").order_by("id")
    assert [(one.origin, one.verb, one.target, one.outcome, one.detail) for one in entries] == [
        ("terminal", "finish", str(gone), "done", f"Running became Error; job job-a: {unknown}"),
        ("terminal", "finish", str(lost), "done", f"Running became Success; job job-b: {known}"),
    ]
    assert all(one.by for one in entries)


def test_pages_find_every_task_and_read_a_bounded_number_of_rows(
    job_service: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Final tasks fill whole pages, and ids have gaps. Progress is told after each page."""
    monkeypatch.setattr("harbor_refresh.management.attach.dead_tasks.PAGE", 2)
    for number in range(5):
        task(job_id=f"job-{number}")
        for _ in range(3):
            task("Success")
        rows.asked("SELECT setval('task_id_seq', nextval('task_id_seq') + 10)")
    seen: list[int] = []
    found = dead_tasks.end(address(job_service), seen.append)
    assert (found.looked_at, found.unfinished, found.dead, found.ended) == (20, 5, 5, 5)
    assert seen == [2 * page for page in range(1, 11)]


def test_without_our_tables_it_says_what_to_type() -> None:
    rows.asked("DELETE FROM django_migrations WHERE app = 'harbor_executions'")
    assert failing("attach", "dead-tasks")[1].endswith("Type: manage.py migrate")


def test_where_no_harbor_is_attached_it_says_so(settings: Settings) -> None:
    settings.REFRESH_ATTACH = ""
    assert "no Harbor is attached" in failing("attach", "dead-tasks")[1]
