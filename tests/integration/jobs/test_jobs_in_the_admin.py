"""Jobs in the admin: the list, the job of a task, the jobs of an execution, and what can be done with them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harbor_refresh.executions.admin.base import CappedPaginator
from harbor_refresh.executions.errors import Contended, DatabaseAway
from harbor_refresh.executions.lifecycle import stops
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.admin import job_actions, job_filters, job_formatters
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.lifecycle import job_stops
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.overview import inspection, pass_counts
from harbor_refresh.tasks.jobs.records.counts import Counts
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.repair.reaper import reap
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.admin_client import act, ids_shown, signed_in, told
from tests.integration.jobs.jobs_in_progress import failed, started, statuses, written
from tests.integration.query_counts import queries
from tests.integration.redis_state import Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "queue")

LIST = "/admin/harbor_executions/execution/"
JOBS = "/admin/harbor_tasks/job/"
TASKS = "/admin/harbor_executions/task/"


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    lonely = absent_redis()
    gone = JobRecords(refresh_settings(), lonely, lonely)
    for module in (inspection, job_stops):
        monkeypatch.setattr(module, "job_records", lambda: gone)
    monkeypatch.setattr(pass_counts, "counts", lambda: Counts(refresh_settings(), lonely, lonely))
    yield
    lonely.close()


def chain(*jobs: str) -> Execution:
    return start("SCAN", [[NewJob("a.job", job_id=job) for job in jobs]]).execution


def without_jobs() -> Execution:
    return create(NewExecution("RETENTION", tasks=[NewTask(job_id="of somebody else")]))


def text(client: Client, address: str, **query: Any) -> str:
    """What a person reads on the page, with single blanks."""
    page = client.get(address, query).content.decode()
    body = page.partition("<main")[2] or page
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def page_of(execution: Execution) -> str:
    return f"{LIST}{execution.pk}/change/"


def page_of_task(job: str) -> str:
    return f"{TASKS}{Task.objects.get(job_id=job).pk}/change/"


def actions(client: Client, execution: Execution) -> list[str]:
    return [one["title"] for one in client.get(page_of(execution)).context["actions_detail"]]


def test_the_list_shows_the_newest_first_and_whom_each_waits_for(admin: Client) -> None:
    chain("first", "then")
    first, then = Task.objects.order_by("pk")

    response = admin.get(JOBS)

    page = " ".join(response.content.decode().split())
    assert [row.pk for row in response.context["cl"].result_list] == [then.pk, first.pk]
    assert page.count("1 of 5") == 2
    assert page.count(f'<a href="{TASKS}{first.pk}/change/" class="text-link">') == 1
    failed(then.execution, "first")
    page = " ".join(admin.get(JOBS).content.decode().split())
    assert f'<a href="{TASKS}{first.pk}/change/" class="text-link">' in page, "it still waits for what failed"
    report([Report(first.pk, "Success", 1)])
    assert f'<a href="{TASKS}{first.pk}/change/" class="text-link">' not in admin.get(JOBS).content.decode()


@pytest.mark.parametrize(
    ("run_count", "runs_before", "shown"),
    [(0, 0, "1 of 3"), (2, 0, "3 of 3"), (3, 0, "3 of 3"), (3, 3, "1 of 3"), (4, 3, "2 of 3")],
)
def test_the_attempt_is_the_one_it_is_at_and_begins_anew_by_hand(
    run_count: int, runs_before: int, shown: str
) -> None:
    job = Job(max_attempts=3, runs_before=runs_before, task=Task(run_count=run_count))
    assert shown in job_formatters.attempt(job)


def test_a_list_of_jobs_costs_as_many_queries_for_forty_as_for_one(admin: Client) -> None:
    chain("a", "b")
    for_two = queries(admin, JOBS)
    for number in range(20):
        chain(f"a{number}", f"b{number}")

    assert queries(admin, JOBS) == for_two <= 7


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["a", "b", "c"]),
        ({"status__exact": "Error"}, ["b"]),
        ({"name": "other.job"}, ["c"]),
        ({"name": "other.job", "status__exact": "Error"}, []),
        ({"task__execution__id__exact": "{first}"}, ["a", "b"]),
        ({"task__execution__id__exact": "{first}", "status__exact": "Pending"}, ["a"]),
        ({"q": "b"}, ["b"]),
        ({"q": "{first}"}, ["a", "b"]),
        ({"q": "{first} b"}, ["b"]),
        ({"q": "nobody"}, []),
        ({"q": "99999999999999999999999"}, []),
    ],
)
def test_jobs_are_found_by_status_name_job_and_execution(
    admin: Client, query: dict[str, str], expected: list[str]
) -> None:
    for _ in range(10):
        create(NewExecution("SCAN"))  # so that no execution has the id of a task
    first = started("a", "b")
    start("SCAN", [[NewJob("other.job", job_id="c")]])
    failed(first, "b")

    response = admin.get(JOBS, {name: value.format(first=first.pk) for name, value in query.items()})

    names = dict(Task.objects.values_list("pk", "job_id"))
    assert sorted(names[pk] for pk in ids_shown(response)) == expected
    by_name = next(one for one in response.context["cl"].filter_specs if one.title == "name")
    assert by_name.lookup_choices == [("a.job", "a.job"), ("other.job", "other.job")]


@pytest.mark.parametrize("query", ["task__execution__id__exact", "q"])
def test_the_jobs_of_one_execution_come_unfinished_first(admin: Client, query: str) -> None:
    started("x")  # so that no execution has the id of a task of this one
    execution = started("a", "b", "c")
    failed(execution, "c")
    names = dict(execution.tasks.values_list("pk", "job_id"))

    shown = ids_shown(admin.get(JOBS, {query: execution.pk}))

    assert [names[pk] for pk in shown if pk in names] == ["b", "a", "c"]


def test_filters_look_at_a_bounded_number_of_jobs_or_at_all_of_one_execution(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("NEWEST", "MOST"):
        monkeypatch.setattr(job_filters, bound, 2)
    execution = started("a", "b", "c")
    tasks = list(execution.tasks.order_by("-pk").values_list("pk", flat=True))

    for chosen, said in (
        ({"status__exact": "Pending"}, "Pending: 2 jobs of the newest executions."),
        ({"name": "a.job"}, "a.job: of the newest 2 jobs."),
    ):
        response = admin.get(JOBS, chosen)
        assert ids_shown(response) == tasks[:2]
        assert said in response.content.decode()
        assert ids_shown(admin.get(JOBS, chosen | {"task__execution__id__exact": execution.pk})) == tasks
        assert ids_shown(admin.get(JOBS, chosen | {"q": execution.pk})) == tasks
    assert ids_shown(admin.get(JOBS)) == tasks


def test_jobs_of_every_status_are_found_among_tasks_without_jobs(admin: Client) -> None:
    execution, other = started(*Status.values), without_jobs()
    reports = [Report(task.pk, task.job_id, 1) for task in execution.tasks.order_by("pk")]
    report([*reports, Report(other.tasks.get().pk, "Error", 1)])
    names = dict(Task.objects.values_list("pk", "job_id"))

    found = {
        one: [names[pk] for pk in ids_shown(admin.get(JOBS, {"status__exact": one}))] for one in Status.values
    }

    assert found == {one: [one] for one in Status.values}


def test_no_list_of_jobs_counts_further_than_the_cap(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    started(*"abcde")

    with CaptureQueriesContext(connection) as captured:
        page = admin.get(JOBS).content.decode()

    counting_queries = [one["sql"] for one in captured if "COUNT" in one["sql"]]
    assert len(counting_queries) == 1
    assert "LIMIT 4" in counting_queries[0]
    assert "The first 3 rows: search or filter for the others" in page


def test_a_job_leads_to_its_task_and_can_be_neither_added_changed_nor_deleted(admin: Client) -> None:
    started("a")
    pk = Task.objects.get().pk
    before = list(Job.objects.values())

    led = admin.get(f"{JOBS}{pk}/change/")
    refused = [
        admin.get(f"{JOBS}add/").status_code,
        admin.post(f"{JOBS}{pk}/change/", {"name": "x"}).status_code,
        admin.post(f"{JOBS}{pk}/delete/", {"post": "yes"}).status_code,
    ]

    assert (led.status_code, led.headers["Location"]) == (302, f"{TASKS}{pk}/change/")
    assert f'href="{TASKS}{pk}/change/' in admin.get(JOBS).content.decode()
    assert refused == [403, 403, 403]
    assert list(Job.objects.values()) == before


def test_what_reaper_and_recovery_did_is_shown_over_the_jobs(admin: Client, redis: Redis) -> None:
    assert "Jobs that were repaired after crashes and lost messages: 0" in text(admin, JOBS)
    assert text(admin, JOBS).count("There was no pass yet.") == 2
    redis.hset("cache:execution:refresh:jobs", mapping={"x": "nonsense", "y": "nonsense"})
    reap()

    page = text(admin, JOBS)

    assert ": 2 Recovery" in page
    assert "2 records that could not be read, dropped" in page
    assert "Its last of 1 pass was at 20" in page
    assert page.count("There was no pass yet.") == 1
    assert "Reaper" not in text(admin, JOBS, task__execution__id__exact=1)


def test_the_page_of_a_task_shows_its_job(admin: Client) -> None:
    start(
        "SCAN",
        [
            [
                NewJob(
                    "a.job", job_id="j", args=["<b>bold</b>"], kwargs={"deep": ["x" * 50]}, options={"priority": 3}
                ),
                NewJob("a.job", job_id="then", max_attempts=2),
            ]
        ],
    )

    page = text(admin, page_of_task("j"))

    assert "Name a.job Attempt 1 of 5 Arguments [&quot;&lt;b&gt;bold&lt;/b&gt;&quot;]" in page
    assert f"{{ &quot;deep&quot;: [ &quot;{'x' * 50}&quot; ] }} Options {{&quot;priority&quot;: 3}}" in page
    assert "Known to Redis No worker has begun it." in page
    first = Task.objects.get(job_id="j")
    assert (
        f"Attempt 1 of 2 Arguments - Named arguments - Options - Message sent - Waits for {first.pk} Pending"
        in (text(admin, page_of_task("then")))
    )


def test_the_page_of_a_task_shows_what_redis_knows_of_its_job_now(
    admin: Client, queue: ExecutionQueue, redis: Redis
) -> None:
    started("runs", "dead", "done", "later")
    queue.heartbeat("live")
    written(redis, "runs", "Running", "live", landed=True, message="layer <3> of 7")
    written(redis, "dead", "Running", "gone")
    written(redis, "done", "Success", "live")
    written(redis, "later", "Scheduled", later=3 * 86_400 + 60)

    told = {
        job: text(admin, page_of_task(job)).partition("Job Name")[0] for job in ("runs", "dead", "done", "later")
    }

    ends = {
        job: re.sub(r"\d+ s ago", "N s ago", one.partition("At this moment ")[2].strip())
        for job, one in told.items()
    }
    assert ends == {
        "runs": "Runs on live Runs so far 1 Last heard of N s ago: layer &lt;3&gt; of 7 "
        "Its last report is in the database",
        "dead": "Runs on gone Silent Runs so far 1 Last heard of N s ago "
        "Its last report is not in the database yet",
        "done": "Runs on No node: it is Success Runs so far 1 Last heard of N s ago "
        "Its last report is not in the database yet",
        "later": "Runs on No node: it is Scheduled Runs so far 1 Last heard of to run in 3 d "
        "Its last report is not in the database yet",
    }


def test_a_task_that_is_over_or_nobodys_job_has_nothing_to_tell_of_now(admin: Client) -> None:
    execution = started("a")
    failed(execution, "a")
    without_jobs()

    over, other = text(admin, page_of_task("a")), text(admin, page_of_task("of somebody else"))

    assert "Name a.job" in over
    assert "Attempt" not in other
    for page in (over, other):
        assert "At this moment" not in page


@pytest.mark.usefixtures("redis_away")
def test_a_redis_that_is_away_is_told_and_is_no_error(admin: Client) -> None:
    started("a")

    assert "Known to Redis Redis is away, so this is unknown. Redis: ConnectionError" in (
        text(admin, page_of_task("a"))
    )
    assert "Redis is away, so it is unknown which jobs were repaired. Redis: ConnectionError" in text(admin, JOBS)


def test_an_execution_with_jobs_shows_how_far_it_is(admin: Client) -> None:
    execution = started("a", "b", "c", "d")
    failed(execution, "a")

    page = admin.get(page_of(execution)).content.decode()

    assert "1 of 4 tasks have ended, 1 with an error. About" in page
    assert f"{JOBS}?task__execution__id__exact={execution.pk}" in page
    stops.stop(execution.pk)
    assert (
        "4 of 4 tasks have ended, 1 with an error, 3 stopped.<" in admin.get(page_of(execution)).content.decode()
    )


def test_an_execution_without_jobs_is_stopped_and_has_nothing_to_run_again(admin: Client) -> None:
    execution = without_jobs()

    page = admin.get(page_of(execution)).content.decode()
    assert actions(admin, execution) == ["Refresh now", "Stop"]
    act(admin, LIST, "retry_selected", [execution.pk])
    act(admin, LIST, "resume_selected", [execution.pk])
    every = act(admin, LIST, "stop_selected", [execution.pk])

    assert "Its jobs" not in page
    assert told(every) == [
        *[f"warning: Without jobs, so left alone: {execution.pk}."] * 2,
        "success: 1 execution stopped; 0 jobs run and were asked to stop.",
    ]
    assert statuses(execution)[0] == "Stopped"


def test_the_actions_on_a_page_are_those_that_would_do_something(admin: Client) -> None:
    execution = started("a", "b")
    assert actions(admin, execution) == ["Refresh now", "Stop"]
    failed(execution, "a")
    assert actions(admin, execution) == ["Refresh now", "Stop", "Try failed jobs again"]
    stops.stop(execution.pk)
    assert actions(admin, execution) == ["Refresh now", "Try failed jobs again", "Resume stopped jobs", "Delete"]


def test_stop_on_the_page_asks_first_and_stops_what_waits_and_what_runs(admin: Client, redis: Redis) -> None:
    execution, other = started("waits", "runs"), started("other")
    written(redis, "runs", "Running", "live")
    address = f"{LIST}{execution.pk}/stop/"

    asked = admin.get(address)
    before = statuses(execution)
    done = admin.post(address, {"_form_submitted": "True"})

    assert "Stop?" in asked.content.decode()
    assert before == ("Running", {"waits": "Pending", "runs": "Pending"})
    assert done.headers["HX-Redirect"] == page_of(execution)
    assert told(done) == ["success: 1 execution stopped; 1 job runs and was asked to stop."]
    assert statuses(execution) == ("Stopped", {"waits": "Stopped", "runs": "Stopped"})
    assert statuses(other) == ("Running", {"other": "Pending"})
    assert {job: one.asked for job, one in job_records().of(["waits", "runs"]).items()} == {"runs": True}
    *_, again = told(admin.post(address, {"_form_submitted": "True"}))
    assert again == f"warning: Already ended, so left alone: {execution.pk}."


def test_try_failed_jobs_again_on_the_page_asks_first_and_runs_them_once_more(admin: Client) -> None:
    execution = started("a", "b")
    failed(execution, "a")
    address = f"{LIST}{execution.pk}/retry/"

    asked = admin.get(address)
    before = statuses(execution)[1]
    done = admin.post(address, {"_form_submitted": "True"})

    assert "Try failed jobs again?" in asked.content.decode()
    assert before == {"a": "Error", "b": "Pending"}
    assert told(done) == ["success: 1 job of 1 execution will be tried again."]
    assert statuses(execution)[1] == {"a": "Pending", "b": "Pending"}
    assert Task.objects.get(job_id="a").status_revision == 1
    *_, again = told(admin.post(address, {"_form_submitted": "True"}))
    assert again == "warning: No job of these executions has failed."


def test_the_list_stops_and_tries_again_several_at_once(admin: Client) -> None:
    one, other, left = started("a"), started("b", "c"), started("d")
    failed(other, "b", "c")

    act(admin, LIST, "retry_selected", [one.pk, other.pk])
    both = act(admin, LIST, "stop_selected", [one.pk, other.pk])

    assert told(both) == [
        "success: 2 jobs of 1 execution will be tried again.",
        "success: 2 executions stopped; 0 jobs run and were asked to stop.",
    ]
    assert [statuses(execution)[0] for execution in (one, other, left)] == ["Stopped", "Stopped", "Running"]


def test_more_than_a_request_can_do_is_refused(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_actions, "MAX_CHOSEN", 1)
    both = [started("a"), started("b")]

    response = act(admin, LIST, "stop_selected", [one.pk for one in both])

    assert told(response) == [
        "error: Nothing was done: 1 at once is the most. Choose all that match, and workers do it."
    ]
    assert [statuses(one)[0] for one in both] == ["Running", "Running"]


@pytest.mark.usefixtures("redis_away")
def test_a_stop_without_redis_stops_all_the_same_for_the_database_decides(admin: Client) -> None:
    execution = started("a")

    (message,) = told(act(admin, LIST, "stop_selected", [execution.pk]))

    assert message == "success: 1 execution stopped; 0 jobs run and were asked to stop."
    assert statuses(execution) == ("Stopped", {"a": "Stopped"})


def test_what_was_stopped_before_the_database_went_away_is_told(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = started("a"), started("b")
    stop = job_actions.stop_jobs

    def away(pk: int, also: Callable[[], object]) -> int:
        if pk == second.pk:
            raise DatabaseAway("PostgreSQL: gone")
        return stop(pk, also)

    monkeypatch.setattr(job_actions, "stop_jobs", away)

    assert told(act(admin, LIST, "stop_selected", [first.pk, second.pk])) == [
        "error: PostgreSQL: gone. The rest was left as it is: try again when it is back.",
        "success: 1 execution stopped; 0 jobs run and were asked to stop.",
    ]


def test_looking_takes_the_view_permission_and_acting_the_change_permission() -> None:
    client = signed_in("view_execution")
    execution = started("a", "b")
    failed(execution, "a")
    before = statuses(execution)

    refused = [
        client.post(f"{LIST}{execution.pk}/{verb}/", {"_form_submitted": "1"}) for verb in ("stop", "retry")
    ]
    act(client, LIST, "stop_selected", [execution.pk])
    act(client, LIST, "retry_selected", [execution.pk])

    assert [one.status_code for one in refused] == [403, 403]
    assert client.get(JOBS).status_code == 403
    assert actions(client, execution) == []
    assert statuses(execution) == before


@pytest.mark.parametrize("address", [LIST + "{execution}/change/", TASKS + "{task}/change/"])
def test_a_page_costs_the_same_with_500_jobs(admin: Client, address: str) -> None:
    small, large = started("a"), started(*(f"job-{number}" for number in range(500)))

    queries(
        admin, address.format(execution=small.pk, task=small.tasks.latest("pk").pk)
    )  # what a process reads once
    costs = [
        queries(admin, address.format(execution=one.pk, task=one.tasks.latest("pk").pk)) for one in (small, large)
    ]

    assert costs[0] == costs[1] <= 12


@pytest.mark.parametrize("verb", ["stop", "retry"])
def test_an_execution_that_is_not_there_is_no_error_of_the_server(admin: Client, verb: str) -> None:
    assert admin.post(f"{LIST}99999/{verb}/", {"_form_submitted": "1"}).status_code < 500
    assert admin.get(f"{LIST}99999/change/").status_code == 302
    assert admin.get(f"{LIST}nonsense/change/").status_code == 302


@pytest.mark.parametrize(
    ("action", "act_on", "done"),
    [
        ("stop_selected", "stop_jobs", "success: 1 execution stopped; 0 jobs run and were asked to stop."),
        ("retry_selected", "retry_failed", "success: 1 job of 1 execution will be tried again."),
    ],
)
def test_an_execution_that_is_deleted_before_its_turn_is_left_out(
    admin: Client, action: str, act_on: str, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, left = started("a"), started("b", "c")
    failed(left, "b")
    as_it_is = getattr(job_actions, act_on)

    def after_a_delete(pk: int, *more: Any) -> int:
        delete([gone.pk])
        return int(as_it_is(pk, *more))

    monkeypatch.setattr(job_actions, act_on, after_a_delete)
    assert told(act(admin, LIST, action, [gone.pk, left.pk])) == [done]


def test_unique_jobs_that_others_take_each_time_are_told(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = started("a")
    failed(execution, "a")

    def contended(pk: int) -> int:
        raise Contended

    monkeypatch.setattr(job_actions, "retry_failed", contended)
    assert told(act(admin, LIST, "retry_selected", [execution.pk])) == [
        f"error: {Contended.__doc__} The rest was left as it is: try again."
    ]
