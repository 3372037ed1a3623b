"""Jobs in the admin: the list, the job of a task, the jobs of an execution, and what can be done with them."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.test import Client

from harbor_refresh.executions.errors import Contended, DatabaseAway
from harbor_refresh.executions.lifecycle import stops
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.stops import Stopped
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.admin import execution_actions
from harbor_refresh.tasks.admin import job as screen
from harbor_refresh.tasks.admin.job_formatters import attempt_of
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.operations import bulk
from tests.integration.admin_client import act, ids_shown, told
from tests.integration.jobs.sample_jobs import (
    Outbox,
    beats,
    begun,
    chained,
    failed,
    in_a_row,
    its_process_looked,
    recorded,
    statuses,
)
from tests.integration.sample_executions import delete
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "queue", "outbox")

LIST = "/admin/harbor_executions/execution/"
JOBS = "/admin/harbor_tasks/job/"
TASKS = "/admin/harbor_executions/task/"


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
    return [one["title"] for one in client.get(page_of(execution)).context["page_actions"]]


def test_the_list_shows_the_newest_first_and_for_how_many_each_waits(admin: Client) -> None:
    chained("first", "then")
    first, then = Task.objects.order_by("pk")

    response = admin.get(JOBS)

    page = " ".join(response.content.decode().split())
    assert [row.pk for row in response.context["cl"].result_list] == [then.pk, first.pk]
    assert page.count("1 of 5") == 2
    assert len(re.findall(r">\s*1 job\s*<", page)) == 1
    failed(then.execution, "first")
    assert not re.search(r">\s*1 job\s*<", admin.get(JOBS).content.decode())


@pytest.mark.parametrize(
    ("state", "run", "runs_before", "shown"),
    [
        ("waiting", 0, 0, "1 of 3"),
        ("sent", 2, 0, "3 of 3"),
        ("running", 1, 0, "1 of 3"),
        ("ended", 1, 0, "1 of 3"),
        ("ended", 0, 0, "1 of 3"),
        ("ended", 3, 0, "3 of 3"),
        ("sent", 3, 3, "1 of 3"),
        ("running", 5, 3, "2 of 3"),
    ],
)
def test_the_attempt_is_the_one_it_is_at_and_begins_anew_by_hand(
    state: str, run: int, runs_before: int, shown: str
) -> None:
    job = Job(max_attempts=3, runs_before=runs_before, run=run, state=state)
    assert f">{shown}<" in attempt_of(job)


def test_the_list_says_where_each_job_is(admin: Client, outbox: Outbox) -> None:
    beats()
    recorded("runs", "is sent", "has ended")
    assert begun(outbox.take()[0])
    failed(Execution.objects.get(), "has ended")
    recorded("waits", options={"countdown": 3_600})
    cells = re.findall(r"field-state[^>]*>\s*(\w+)", admin.get(JOBS).content.decode())
    assert cells == ["Waiting", "Ended", "Sent", "Running"]


def test_the_page_of_a_task_shows_what_its_job_does_now(admin: Client, outbox: Outbox) -> None:
    beats(1, name="one", busy=1)
    beats(2, name="two", busy=1)
    recorded("runs", "is released", "is sent", "later")
    for message, node in zip(outbox.take()[:2], (1, 2), strict=True):
        assert begun(message, node=node, process=77)
    check_in = json.dumps({"message": "layer <3> of 7", "done": 3, "of": 7})
    its = Job.objects.get(task__job_id="runs").pk
    its_process_looked(its, check_in)
    Node.objects.filter(pk=2).delete()
    recorded("later than that", options={"countdown": 3_600})
    chained("first", "then")
    first = Task.objects.get(job_id="first").pk
    shown = {
        job: re.sub(r"\d+ s\b", "N s", text(admin, page_of_task(job)).partition("Job Name")[0])
        for job in ("runs", "is released", "is sent", "later than that", "then")
    }
    now = {job: page.partition("At this moment ")[2].strip() for job, page in shown.items()}
    assert now == {
        "runs": "Done 3 of 7 Runs on one, process 77 Runs so far 1 Last heard of N s ago: layer &lt;3&gt; of 7",
        "is released": "Runs on a worker that is dead; the job is given to another one in seconds, process 77 "
        "Runs so far 1 Last heard of N s ago",
        "is sent": "Why it does not run sent N s ago, 1 of 4 slots of its workers are busy",
        "later than that": "Why it does not run its time is in N s",
        "then": f"Why it does not run it waits for task {first}, which it needs",
    }


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
    first = recorded("a", "b")
    start("SCAN", [[NewJob("other.job", job_id="c")]])
    failed(first, "b")

    response = admin.get(JOBS, {name: value.format(first=first.pk) for name, value in query.items()})

    names = dict(Task.objects.values_list("pk", "job_id"))
    assert sorted(names[pk] for pk in ids_shown(response)) == expected
    by_name = next(one for one in response.context["cl"].filter_specs if one.title == "name")
    assert by_name.lookup_choices == [("a.job", "a.job"), ("other.job", "other.job")]


@pytest.mark.parametrize("query", ["task__execution__id__exact", "q"])
def test_the_jobs_of_one_execution_come_unfinished_first(admin: Client, query: str) -> None:
    recorded("x")  # so that no execution has the id of a task of this one
    execution = recorded("a", "b", "c")
    failed(execution, "c")
    names = dict(execution.tasks.values_list("pk", "job_id"))

    shown = ids_shown(admin.get(JOBS, {query: execution.pk}))

    assert [names[pk] for pk in shown if pk in names] == ["b", "a", "c"]


def test_filters_look_at_a_bounded_number_of_jobs_or_at_all_of_one_execution(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("NEWEST", "MOST"):
        monkeypatch.setattr(screen, bound, 2)
    execution = recorded("a", "b", "c")
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
        assert ids_shown(admin.get(JOBS, chosen | {"q": " "})) == tasks[:2]
    assert ids_shown(admin.get(JOBS)) == tasks


def test_a_job_leads_to_its_task_and_can_be_neither_added_changed_nor_deleted(admin: Client) -> None:
    recorded("a")
    pk = Task.objects.get().pk
    before = list(Job.objects.values())

    led = admin.get(f"{JOBS}{pk}/change/")
    refused = [
        admin.get(f"{JOBS}add/").status_code,
        admin.post(f"{JOBS}{pk}/change/", {"name": "x"}).status_code,
        admin.post(f"{JOBS}{pk}/delete/", {"post": "yes"}).status_code,
    ]

    assert (led.status_code, led.headers["Location"]) == (302, f"{TASKS}{pk}/change/")
    assert f'href="{JOBS}{pk}/change/' in admin.get(JOBS).content.decode()
    assert refused == [403, 403, 403]
    assert list(Job.objects.values()) == before


def test_the_page_of_a_task_shows_its_job(admin: Client) -> None:
    start(
        "SCAN",
        [
            in_a_row(
                NewJob(
                    "a.job", job_id="j", args=["<b>bold</b>"], kwargs={"deep": ["x" * 50]}, options={"priority": 3}
                ),
                NewJob("a.job", job_id="then", max_attempts=2),
            )
        ],
    )

    page = text(admin, page_of_task("j"))

    assert "Name a.job Attempt 1 of 5 Arguments [&quot;&lt;b&gt;bold&lt;/b&gt;&quot;]" in page
    assert f"{{ &quot;deep&quot;: [ &quot;{'x' * 50}&quot; ] }} Options {{&quot;priority&quot;: 3}}" in page
    assert "Why it does not run no live worker takes the queue harbor_refresh.jobs" in page
    first = Task.objects.get(job_id="j")
    assert f"Attempt 1 of 2 Arguments - Named arguments - Options - Message sent - Needs {first.pk} Pending" in (
        text(admin, page_of_task("then"))
    )


def test_a_task_that_is_over_or_nobodys_job_has_nothing_to_tell_of_now(admin: Client) -> None:
    execution = recorded("a")
    failed(execution, "a")
    without_jobs()

    over, other = text(admin, page_of_task("a")), text(admin, page_of_task("of somebody else"))

    assert "Name a.job" in over
    assert "Attempt" not in other
    for page in (over, other):
        assert "At this moment" not in page


def test_an_execution_with_jobs_shows_how_far_it_is(admin: Client) -> None:
    execution = recorded("a", "b", "c", "d")
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

    assert "Its jobs" not in admin.get(page_of(execution)).content.decode()
    assert actions(admin, execution) == ["Refresh now", "Stop"]
    every = [act(admin, LIST, verb, [execution.pk]) for verb in ("retry", "resume", "stop")][-1]
    assert told(every) == [
        f"info: Left as they are: {execution.pk}.",
        f"info: Left as they are: {execution.pk}.",
        "success: 1 execution stopped.",
    ]
    assert statuses(execution)[0] == "Stopped"


def test_more_than_a_request_can_do_is_refused(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_actions, "MAX_CHOSEN", 1)
    both = [recorded("a"), recorded("b")]

    response = act(admin, LIST, "stop", [one.pk for one in both])

    assert told(response) == [
        "error: Nothing was done: 1 at once is the most. Choose all that match, and workers do it."
    ]
    assert [statuses(one)[0] for one in both] == ["Running", "Running"]


def test_what_was_stopped_before_the_database_went_away_is_told(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = recorded("a"), recorded("b")
    stop = bulk.stop_jobs_of

    def away(ids: Sequence[int]) -> Stopped:
        if ids == [second.pk]:
            raise DatabaseAway("PostgreSQL: gone")
        return stop(ids)

    monkeypatch.setattr(bulk, "stop_jobs_of", away)

    assert told(act(admin, LIST, "stop", [first.pk, second.pk])) == [
        "error: PostgreSQL: gone. The rest was left as it is: try again when it is back.",
        "success: 1 execution stopped.",
    ]


@pytest.mark.parametrize(
    ("action", "act_on", "done"),
    [
        ("stop", "stop_jobs_of", "success: 1 execution stopped."),
        ("retry", "_with_tasks", "success: 1 execution retried."),
    ],
)
def test_an_execution_that_is_deleted_before_its_turn_is_left_out(
    admin: Client, action: str, act_on: str, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, left = recorded("a"), recorded("b", "c")
    failed(left, "b")
    as_it_is = getattr(bulk, act_on)

    def after_a_delete(*given: Any) -> Any:
        delete([gone.pk])
        return as_it_is(*given)

    monkeypatch.setattr(bulk, act_on, after_a_delete)
    assert told(act(admin, LIST, action, [gone.pk, left.pk])) == [done, f"info: Left as they are: {gone.pk}."]


def test_unique_jobs_that_others_take_each_time_are_told(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = recorded("a")
    failed(execution, "a")

    def contended(pk: int) -> int:
        raise Contended

    monkeypatch.setattr(bulk, "retry_failed", contended)
    assert told(act(admin, LIST, "retry", [execution.pk])) == [
        f"error: {Contended.__doc__} The rest was left as it is: try again."
    ]


def test_the_page_of_a_task_shows_the_first_twenty_of_many_needs(admin: Client) -> None:
    parts = [NewJob("fetch") for _ in range(25)]
    start("BUILD", [[*parts, NewJob("merge", job_id="merge", needs=[NewNeed(place) for place in range(25)])]])

    page = admin.get(page_of_task("merge")).content.decode()

    assert page.count("inline-flex gap-2 items-center") == 20
    assert "and 5 more" in page
