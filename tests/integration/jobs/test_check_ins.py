"""What a job says while it runs: what that costs, and where it is shown."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.overview import inspection
from harbor_refresh.tasks.jobs.records.arguments import Arguments
from harbor_refresh.tasks.jobs.records.check_in import CheckIn
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.records.run import Run
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.command_output import data, said
from tests.integration.executions.api.api_client import Program, token
from tests.integration.jobs.jobs_in_progress import started, written
from tests.integration.jobs.test_jobs_in_the_admin import page_of, page_of_task, text
from tests.integration.redis_state import Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "queue")

BAR = '<progress value="3" max="7" aria-label="Progress of the job"></progress>'


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(Scope.READ))


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    lonely = absent_redis()
    gone = JobRecords(refresh_settings(), lonely, lonely)
    monkeypatch.setattr(inspection, "job_records", lambda: gone)
    yield
    lonely.close()


def calls(redis: Redis) -> dict[str, int]:
    info: Any = redis.info("commandstats")
    own = ("cmdstat_info", "cmdstat_config|resetstat")
    return {name: told["calls"] for name, told in info.items() if name not in own}


def running(redis: Redis, job: str, said: CheckIn = CheckIn()) -> Handle:  # noqa: B008  # it is frozen
    written(redis, job, "Running", "live", landed=True, message=said.text)
    Task.objects.filter(job_id=job).update(status=Status.RUNNING, status_code=2)
    task: Any = None
    return Handle(task, Run(job, Task.objects.get(job_id=job).pk, "live", 0, 1), Arguments([], {}, 0))


def check_in_of(job: str) -> CheckIn:
    return CheckIn.read(job_records().of([job])[job].message)


def test_a_check_in_with_numbers_costs_what_one_without_costs(redis: Redis) -> None:
    started("a")
    job = running(redis, "a")
    job.check_in("layer 0")
    costs = []
    for numbers in ({}, {"done": 3, "of": 7}):
        redis.config_resetstat()
        with CaptureQueriesContext(connection) as captured:
            job.check_in("layer 3", **numbers)
        costs.append((calls(redis), len(captured)))

    script = {"cmdstat_evalsha": 1, "cmdstat_time": 1, "cmdstat_hget": 1, "cmdstat_hset": 1}
    assert costs == [(script, 0), (script, 0)]
    assert check_in_of("a") == CheckIn("layer 3", 3, 7)


def test_the_last_check_in_replaces_those_before_it_and_should_stop_keeps_it(redis: Redis) -> None:
    started("a")
    job = running(redis, "a")
    job.check_in("copying", done=3, of=7)
    assert job.should_stop() is False
    assert check_in_of("a") == CheckIn("copying", 3, 7)
    job.check_in(done=4, of=7)
    assert check_in_of("a") == CheckIn("", 4, 7)
    job.check_in("verifying")
    assert check_in_of("a") == CheckIn("verifying")


def test_a_report_that_recovery_makes_of_a_run_has_its_message_and_no_numbers(
    redis: Redis, queue: ExecutionQueue
) -> None:
    started("a")
    written(redis, "a", "Running", "live", message=CheckIn("layer 3", 3, 7).text)
    reap()
    assert list(Task.objects.values_list("status", "status_message")) == [("Running", "layer 3")]


def test_the_page_of_a_task_shows_a_bar_for_numbers_alone(
    admin: Client, redis: Redis, queue: ExecutionQueue
) -> None:
    queue.heartbeat("live")
    started("a", "b")
    running(redis, "a", CheckIn("layer <3>", 3, 7))
    running(redis, "b", CheckIn("layer 4"))

    page = admin.get(page_of_task("a")).content.decode()
    assert page.count(BAR) == 1
    assert "3 of 7" in text(admin, page_of_task("a"))
    assert "ago: layer &lt;3&gt;" in page
    other = admin.get(page_of_task("b")).content.decode()
    assert "<progress" not in other
    assert "ago: layer 4" in other


def test_the_page_of_an_execution_shows_its_running_jobs_with_their_bars(
    admin: Client, redis: Redis, queue: ExecutionQueue
) -> None:
    queue.heartbeat("live")
    execution = started("a", "b", "waits")
    started("of another one")
    running(redis, "of another one", CheckIn("no", 1, 2))
    running(redis, "a", CheckIn("layer <3>", 3, 7))
    running(redis, "b", CheckIn("layer 4"))
    address = f"/admin/harbor_executions/execution/{execution.pk}/running/"

    assert f'hx-get="{address}"' in admin.get(page_of(execution)).content.decode()
    part = admin.get(address).content.decode()
    assert part.count("<progress") == part.count(BAR) == 1
    assert "layer &lt;3&gt;" in part
    shown = " ".join(text(admin, address).split())
    first, second = Task.objects.filter(job_id__in=["a", "b"]).order_by("pk")
    assert f"{first.pk} a.job 3 of 7 layer &lt;3&gt;" in shown
    assert f"{second.pk} a.job layer 4" in shown
    assert shown.count("a.job") == 2
    Task.objects.update(status=Status.PENDING, status_code=0)
    assert text(admin, address) == "No job runs now."


@pytest.mark.usefixtures("redis_away")
def test_without_redis_the_page_of_an_execution_says_so_and_the_api_answers(
    admin: Client, program: Program, redis: Redis
) -> None:
    execution = started("a")
    running(redis, "a", CheckIn("layer 3", 3, 7))
    address = f"/admin/harbor_executions/execution/{execution.pk}/running/"
    assert "Redis is away, so this is unknown." in text(admin, address)
    assert [one["check_in"] for one in program.get(f"/executions/{execution.pk}/jobs")["items"]] == [None]


def test_the_api_tells_of_each_job_what_its_run_said(program: Program, redis: Redis) -> None:
    execution = started("a", "b", "waits")
    running(redis, "a", CheckIn("layer 3", 3, 7))
    running(redis, "b")
    a, b, waits = Task.objects.order_by("pk")

    page = program.get(f"/executions/{execution.pk}/jobs?limit=2")
    assert page["next"] == str(b.pk)
    at = [one["check_in"].pop("at") for one in page["items"]]
    assert all(at)
    assert page["items"] == [
        {
            "task_id": a.pk,
            "name": "a.job",
            "status": "Running",
            "check_in": {"message": "layer 3", "done": 3, "of": 7, "progress": 3 / 7},
        },
        {
            "task_id": b.pk,
            "name": "a.job",
            "status": "Running",
            "check_in": {"message": "", "done": None, "of": None, "progress": None},
        },
    ]
    rest = program.get(f"/executions/{execution.pk}/jobs?limit=2&cursor={page['next']}")
    assert rest == {
        "items": [{"task_id": waits.pk, "name": "a.job", "status": "Pending", "check_in": None}],
        "next": None,
    }
    assert program.get(f"/tasks/{a.pk}/job")["check_in"]["done"] == 3
    program.get("/executions/7777/jobs", status=404)
    program.get("/tasks/7777/job", status=404)


def test_a_page_of_jobs_costs_as_many_statements_for_forty_as_for_one(program: Program, redis: Redis) -> None:
    costs = []
    for names in (["a"], [f"job {number}" for number in range(40)]):
        execution = started(*names)
        for name in names:
            running(redis, name, CheckIn("layer 3", 3, 7))
        program.get(f"/executions/{execution.pk}/jobs")
        redis.config_resetstat()
        with CaptureQueriesContext(connection) as captured:
            assert len(program.get(f"/executions/{execution.pk}/jobs")["items"]) == len(names)
        costs.append((len(captured), calls(redis).get("cmdstat_hmget"), calls(redis).get("cmdstat_evalsha")))
    assert costs[0] == costs[1]
    assert costs[0] == (costs[0][0], 3, 1), "two of the HMGET are of the script that tells the time"


def test_the_command_lists_the_jobs_that_run(redis: Redis) -> None:
    execution = started("a", "b", "waits")
    running(redis, "a", CheckIn("layer 3", 3, 7))
    running(redis, "b")
    a, b = Task.objects.filter(status=Status.RUNNING).order_by("pk")

    found = data("harbor", "show", "--running", execution.pk)["running"]
    assert all(0 <= one.pop("seconds_ago") < 60 for one in found)
    assert found == [
        {"task_id": a.pk, "name": "a.job", "message": "layer 3", "done": 3, "of": 7},
        {"task_id": b.pk, "name": "a.job", "message": "", "done": None, "of": None},
    ]
    shown = said("harbor", "show", "--running", execution.pk).splitlines()
    assert shown[1].split()[:7] == [str(a.pk), "a.job", "3", "of", "7", "layer", "3"]
    Task.objects.update(status=Status.PENDING, status_code=0)
    assert said("harbor", "show", "--running", execution.pk).strip() == "No job runs now."
