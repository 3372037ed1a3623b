"""Jobs in the admin: the list, the job of a task, the jobs of an execution, and what can be done with them."""

import json
import re
from collections.abc import Sequence

import pytest
from django.test import Client

from harbor_refresh.executions.errors import Contended, DatabaseDown, NoSuchExecution
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.stops import Stopped
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.admin import execution_actions, job_formatters
from harbor_refresh.tasks.admin import job as screen
from harbor_refresh.tasks.admin import task as task_screen
from harbor_refresh.tasks.jobs.again import retry_failed
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.operations import bulk
from tests.integration.admin_client import act, ids_shown, text, told
from tests.integration.jobs.sample_jobs import (
    Outbox,
    beats,
    begun,
    chained,
    failed,
    in_a_row,
    its_process_looked,
    recorded,
    send_all,
    statuses,
)
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "queue", "outbox")

LIST = "/admin/harbor_executions/execution/"
JOBS = "/admin/harbor_tasks/job/"
TASKS = "/admin/harbor_executions/task/"


def read(client: Client, address: str) -> str:
    return text(client.get(address).content.decode())


def page_of(execution: Execution) -> str:
    return f"{LIST}{execution.pk}/change/"


def page_of_task(job: str) -> str:
    return f"{TASKS}{Task.objects.get(job_id=job).pk}/change/"


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


def test_the_attempt_is_the_one_it_is_at_and_begins_anew_by_hand(admin: Client, outbox: Outbox) -> None:
    def attempt() -> str:
        return read(admin, page_of_task("a")).partition("Attempt ")[2][:6]

    beats()
    execution = recorded("a")
    for status, before in ((Status.PENDING, "1 of 5"), (Status.ERROR, "2 of 5")):
        assert attempt() == before
        run = begun(*outbox.take())
        assert run
        assert attempt() == before
        take([Outcome(run.run, status)])
        send_all()
    assert attempt() == "2 of 5"
    retry_failed(execution.pk)
    assert attempt() == "1 of 5"


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
        job: re.sub(r"\d+ s\b", "N s", read(admin, page_of_task(job)).partition("Job Name")[0])
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
        ({"task__execution__id__exact": "{first}"}, ["a", "b"]),
        ({"task__execution__id__exact": "{first}", "status__exact": "Pending"}, ["a"]),
        ({"q": "b"}, ["b"]),
        ({"q": "{first}"}, ["a", "b"]),
        ({"q": "{first} b"}, ["b"]),
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

    page = read(admin, page_of_task("j"))

    assert "Name a.job Attempt 1 of 5 Arguments [&quot;&lt;b&gt;bold&lt;/b&gt;&quot;]" in page
    assert f"{{ &quot;deep&quot;: [ &quot;{'x' * 50}&quot; ] }} Options {{&quot;priority&quot;: 3}}" in page
    assert "Why it does not run no live worker takes the queue harbor_refresh.jobs" in page
    first = Task.objects.get(job_id="j")
    assert f"Attempt 1 of 2 Arguments - Named arguments - Options - Message sent - Needs {first.pk} Pending" in (
        read(admin, page_of_task("then"))
    )


def test_a_task_that_is_over_or_of_no_job_has_nothing_to_tell_of_now(admin: Client) -> None:
    execution = recorded("a")
    failed(execution, "a")
    without = create(NewExecution("RETENTION", tasks=[NewTask(job_id="of somebody else")]))

    over, other = read(admin, page_of_task("a")), read(admin, page_of_task("of somebody else"))

    assert "Name a.job" in over
    assert "Attempt" not in other
    for page in (over, other):
        assert "At this moment" not in page
    for one, has_jobs in ((execution, True), (without, False)):
        to_its_jobs = f"{JOBS}?task__execution__id__exact={one.pk}"
        assert (to_its_jobs in admin.get(page_of(one)).content.decode()) == has_jobs


def test_more_than_a_request_can_do_is_refused(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_actions, "MAX_CHOSEN", 1)
    both = [recorded("a"), recorded("b")]

    response = act(admin, LIST, "stop", [one.pk for one in both])

    assert told(response) == [
        "error: Nothing was done: 1 at once is the most. Choose all that match, and workers do it."
    ]
    assert [statuses(one)[0] for one in both] == ["Running", "Running"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DatabaseDown("gone"), "gone. The rest was left as it is: try again when it is back."),
        (Contended(), f"{Contended.__doc__} The rest was left as it is: try again."),
    ],
)
def test_what_was_stopped_before_an_error_is_told(
    admin: Client, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = recorded("a"), recorded("b")
    stop = bulk.stop_jobs_of

    def breaks(ids: Sequence[int]) -> Stopped:
        if ids == [second.pk]:
            raise error
        return stop(ids)

    monkeypatch.setattr(bulk, "stop_jobs_of", breaks)
    assert told(act(admin, LIST, "stop", [first.pk, second.pk])) == [
        f"error: {said}",
        "success: 1 execution stopped.",
    ]


def test_a_job_whose_execution_is_deleted_meanwhile_does_not_run_again(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = recorded("a")
    failed(execution, "a")

    def deleted(task_id: int) -> int:
        raise NoSuchExecution(execution.pk)

    monkeypatch.setattr(task_screen, "run_job_again", deleted)
    answer = admin.post(page_of_task("a").replace("/change/", "/retry/"), {"confirmed": "yes"})
    assert told(answer) == [
        "warning: An execution does not exist any more. The rest was left as it is: try again."
    ]


def test_the_page_of_a_task_shows_the_first_twenty_of_many_needs(admin: Client) -> None:
    parts = [NewJob("fetch") for _ in range(25)]
    start("BUILD", [[*parts, NewJob("merge", job_id="merge", needs=[NewNeed(place) for place in range(25)])]])

    page = admin.get(page_of_task("merge")).content.decode()

    assert page.count("inline-flex gap-2 items-center") == 20
    assert "and 5 more" in page


# the picture of the jobs that need each other


Part = list[NewJob]


def chord(header: int) -> Part:
    fetches = [NewJob("fetch") for _ in range(header)]
    return [*fetches, NewJob("merge", needs=[NewNeed(place) for place in range(header)])]


def picture(admin: Client, execution: Execution) -> str:
    answer = admin.get(f"/admin/harbor_executions/execution/{execution.pk}/running/")
    html: str = answer.json()["parts"]["running"]
    return html


def boxes(html: str) -> list[tuple[str, str]]:
    return re.findall(r"<text [^>]*>(.*?)</text>\s*<text [^>]*>(.*?)</text>", html)


def test_an_execution_whose_jobs_need_no_others_has_no_picture(admin: Client) -> None:
    assert "<svg" not in picture(admin, recorded("a", "b"))


def test_each_job_is_a_box_with_its_status_that_leads_to_its_task(admin: Client) -> None:
    execution = start(
        "BUILD", [in_a_row(NewJob("shop.fetch", job_id="a"), NewJob("<build>"), NewJob("push")), [NewJob("x")]]
    )
    failed(execution, "a")
    html = picture(admin, execution)
    assert boxes(html) == [("fetch", "Error"), ("&lt;build&gt;", "Stopped"), ("push", "Stopped")]
    first = Task.objects.earliest("pk").pk
    assert html.count(f'<a href="/admin/harbor_executions/task/{first}/change/">') == 1
    assert html.count("<path") == 2
    assert "3 jobs" in html


@pytest.mark.parametrize(
    ("part", "shown", "lines"),
    [
        (chord(10), ["fetch"] * 10 + ["merge"], 10),
        (chord(10_000), ["fetch (10,000)", "merge"], 1),
    ],
    ids=["at 10", "at 10,000"],
)
def test_it_is_readable_at_ten_and_folded_at_ten_thousand(
    part: Part, shown: list[str], lines: int, admin: Client
) -> None:
    html = picture(admin, start("BUILD", [part]))
    assert [name for name, _ in boxes(html)] == shown
    assert html.count("<path") == lines


def test_many_chains_before_one_job_are_one_chain_of_boxes(admin: Client) -> None:
    part: Part = []
    for number in range(20):
        part += [NewJob("pull"), NewJob("push", needs=[NewNeed(2 * number)])]
    part.append(NewJob("tell", needs=[NewNeed(2 * number + 1) for number in range(20)]))
    execution = start("BUILD", [part])
    assert boxes(picture(admin, execution)) == [
        ("pull (20)", "20 Pending"),
        ("push (20)", "20 Pending"),
        ("tell", "Pending"),
    ]


def test_a_graph_that_is_too_large_says_so(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = start("BUILD", [chord(40)])
    for name in ("MOST_LINES", "MOST_BOXES"):
        with monkeypatch.context() as patch:
            patch.setattr(job_formatters, name, 1)
            assert "There are too many jobs with needs to draw them." in picture(admin, execution)
