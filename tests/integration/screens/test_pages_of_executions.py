"""The list and the page of executions, their tasks, and the page of errors: what they find, show and do."""

import gzip
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from harbor_refresh.executions.admin import filters
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.vendor_keys import number_of
from harbor_refresh.executions.models import (
    AuditEntry,
    Delivery,
    Execution,
    Link,
    Subscription,
    Task,
    VendorKey,
)
from harbor_refresh.executions.news.audit import Origin, Person, Target, Word, note
from harbor_refresh.executions.news.deliveries.claims import read_changes
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from harbor_refresh.executions.news.deliveries.messages import body_of
from harbor_refresh.executions.news.deliveries.subscriptions import new_secret
from harbor_refresh.executions.queries import listing
from harbor_refresh.tasks.admin import execution as tasks_admin
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.models.job import Job, JobEnd, JobState
from harbor_refresh.tasks.models.terms import Terms
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.created import create_many
from tests.integration.admin_client import act, ids_shown, signed_in, told
from tests.integration.checks.examined import found
from tests.integration.concurrency import statement_held_open
from tests.integration.jobs.sample_jobs import failed, in_a_row, statuses
from tests.integration.jobs.sample_jobs import recorded as started
from tests.integration.query_counts import queries
from tests.integration.sample_executions import delete, with_tasks
from tests.started import start

pytestmark = pytest.mark.usefixtures("database", "queue")

LIST = "/admin/harbor_executions/execution/"
TASKS = "/admin/harbor_executions/task/"
ERRORS = f"{TASKS}errors/"
LOG = "/admin/harbor_executions/auditentry/"


def page_of(execution: Execution) -> str:
    return f"{LIST}{execution.pk}/change/"


def panel_of(execution: Execution) -> str:
    return f"{LIST}{execution.pk}/panel/"


def text(response: Any) -> str:
    """What a person reads, with single blanks."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def part(response: Any) -> str:
    """What a person reads of a part of an open page."""
    (html,) = response.json()["parts"].values()
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def began(execution: Execution, at: str) -> None:
    Execution.objects.filter(pk=execution.pk).update(start_time=at)


#: What each query of the list finds.
FOUND: list[tuple[dict[str, str], list[str]]] = [
    ({"status__exact": "Error"}, ["held", "failed"]),
    ({"status__exact": "Success"}, ["done"]),
    ({"status__exact": "Error", "vendor": "RETENTION"}, ["held"]),
    ({"vendor_id": "7"}, ["failed"]),
    ({"vendor_id": "seven"}, []),
    ({"vendor_id": "disk/a"}, ["going"]),
    ({"q": "disk/a"}, ["going"]),
    ({"trigger": "SCHEDULE"}, ["failed"]),
    ({"quarantined": "yes"}, ["held"]),
    ({"has_jobs": "yes"}, ["going"]),
    ({"start_time_from_0": "2026-01-02"}, ["held", "going", "done"]),
    ({"start_time_to_0": "2026-01-01"}, ["failed"]),
    ({"start_time_from_0": "2026-01-01", "start_time_to_0": "2026-01-02"}, ["done", "failed"]),
    ({"start_time_from_0": "2026-01-02", "start_time_from_1": "12:00:01"}, ["held", "going"]),
    ({"q": "repository.name=library/app"}, ["failed"]),
    ({"q": 'repository.name="two words"'}, ["done"]),
    ({"q": "repository.name=library/app RETENTION"}, []),
    ({"q": "a-job"}, ["going"]),
    ({"q": "retention"}, ["held"]),
    ({"q": "retention a-job"}, []),
    ({"q": "{held}"}, ["held"]),
    ({"q": "RETENTION {held}"}, ["held"]),
    ({"q": "scan {held}"}, []),
    ({"q": "no such thing"}, []),
]


def test_executions_are_found_by_every_filter_and_search(admin: Client) -> None:
    failure = with_tasks(
        "Error", vendor_id=7, trigger="SCHEDULE", extra_attrs={"repository": {"name": "library/app"}}
    )
    done = with_tasks("Success", extra_attrs={"repository": {"name": "two words"}})
    going = started("a-job")
    Execution.objects.filter(pk=going.pk).update(vendor_id=number_of("disk/a"))
    VendorKey.objects.create(execution=going, key="disk/a")
    held = with_tasks("Error", vendor="RETENTION")
    quarantine([held.pk], 5)
    began(failure, "2026-01-01T23:59:59.5Z")
    began(done, "2026-01-02T12:00:00Z")
    names = {failure.pk: "failed", done.pk: "done", going.pk: "going", held.pk: "held"}

    for query, expected in FOUND:
        response = admin.get(LIST, {name: value.format(held=held.pk) for name, value in query.items()})
        assert [names[pk] for pk in ids_shown(response)] == expected, query
    vendors = next(one for one in response.context["cl"].filter_specs if one.title == "vendor")
    assert [name for name, _ in vendors.lookup_choices] == ["RETENTION", "SCAN", "SCAN_ALL"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"vendor_id": "x" * 256}, "vendor_id takes a whole number of at most 64 bits, a UUID, or text"),
        (
            {"start_time_from_0": "yesterday"},
            "Nothing is listed: a date is written 2026-01-31, and a time 23:59:59.",
        ),
        ({"status__exact": "Success"}, "Of the newest 1 executions, 2,000 at most."),
        ({"trigger": "EVENT"}, "Of the newest 1 executions, 2,000 at most."),
        ({"q": "a=x"}, "Of the newest 1 executions, 2,000 at most."),
        ({"q": f"{'a' * 300}=x"}, "attributes takes at most"),
        ({"q": "nothing-of-that-name"}, "Nothing is listed: the search finds nothing."),
        ({"q": "scan"}, "Nothing is listed: the search finds several vendors; use the filter."),
    ],
)
def test_what_a_filter_did_not_look_at_is_said(
    admin: Client, query: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "NEWEST", 1)
    for vendor in ("IMAGE_SCAN", "SCAN_ALL"):
        with_tasks("Error", vendor=vendor)
    assert said in text(admin.get(LIST, query))


def test_a_search_that_finds_more_executions_of_an_object_than_it_reads_says_so(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "very many executions are of disk/a; use the filter by vendor id."
    keyed = create_many(NewExecution("A", "disk/a") for _ in range(4))
    assert (ids_shown(admin.get(LIST, {"q": "disk/a"})), said in text(admin.get(LIST, {"q": "disk/a"}))) == (
        [one.pk for one in keyed[::-1]],
        False,
    )
    monkeypatch.setattr(filters, "MAX_IDS", 2)
    assert ids_shown(admin.get(LIST, {"q": "disk/a"})) == []
    assert said in text(admin.get(LIST, {"q": "disk/a"}))
    assert len(ids_shown(admin.get(LIST, {"vendor_id": "disk/a"}))) == 4


def test_the_list_is_sorted_by_start_both_ways_and_by_nothing_else(admin: Client) -> None:
    early, late = with_tasks("Success"), with_tasks("Success")
    began(early, "2026-01-01T00:00:00Z")
    began(late, "2025-01-01T00:00:00Z")

    response = admin.get(LIST)
    column = list(response.context["cl"].list_display).index("started")

    assert ids_shown(admin.get(LIST, {"o": str(column)})) == [late.pk, early.pk]
    assert ids_shown(admin.get(LIST, {"o": f"-{column}"})) == [early.pk, late.pk]
    assert response.context["cl"].sortable_by == ("started",)


LISTS = [
    LIST,
    f"{LIST}?status__exact=Running",
    f"{LIST}?trigger=MANUAL",
    f"{LIST}?q=a.b%3Dc",
    f"{LIST}?has_jobs=yes",
    TASKS,
    "/admin/harbor_executions/statuschange/",
    f"{LIST}?quarantined=yes",
    LOG,
]


def test_a_list_takes_at_most_twelve_queries_however_many_rows(admin: Client) -> None:
    def costs(*numbers: int) -> list[int]:
        for number in numbers:
            started(f"job-{number}")
            one = with_tasks("Success", vendor_id=f"disk/{number}")
            quarantine([one.pk], 5)
            note(Person("anna", Origin.ADMIN), Word.STOP, Target.EXECUTION, one.pk)
        return [queries(admin, address) for address in LISTS]

    costs(0)  # the process learns the types of content
    few = costs(1)
    assert costs(*range(2, 32)) == few
    assert max(few) <= 12


PAGES = [
    *(f"{LIST}{{execution}}/{part}/" for part in ("change", "panel", "place", "running")),
    f"{TASKS}?status__exact=Error",
    TASKS + "{task}/change/",
    ERRORS,
    "/admin/harbor_tasks/job/?status__exact=Error",
]


def test_a_page_takes_at_most_twelve_queries_however_many_tasks(admin: Client) -> None:
    def costs(execution: Execution) -> list[int]:
        failed(execution, *execution.tasks.values_list("job_id", flat=True))
        refresh([execution.pk])
        task = execution.tasks.latest("pk")
        return [queries(admin, page.format(execution=execution.pk, task=task.pk)) for page in PAGES]

    costs(started("first"))  # the process learns the types of content
    few = costs(started("a"))
    assert costs(started(*(f"job-{number}" for number in range(100)))) == few
    assert max(few) <= 12


def test_the_panel_grows_with_the_execution(admin: Client) -> None:
    execution = with_tasks("Running", "Running", "Pending", "Pending")
    page = admin.get(page_of(execution)).content.decode()
    address = re.search(r'data-live="([^"]+/panel/)" data-every="2000"', page)
    assert address

    report([Report(task.pk, "Success", 2) for task in execution.tasks.all()])
    refresh([execution.pk])
    changed = admin.get(address[1])

    assert "0 of 4 tasks have ended." in page
    assert changed.status_code == 200
    assert "4 of 4 tasks have ended." in part(changed)
    assert changed.json()["every"] == 15_000, "it may be tried again"
    assert re.search(r"Running\s+→\s+Success", part(changed)), "the timeline"
    assert "no-store" in changed.headers["Cache-Control"]


def test_a_panel_is_not_shown_to_strangers_and_is_no_redirect_to_the_login(admin: Client) -> None:
    execution = with_tasks("Running")
    stranger = signed_in_as("stranger")

    assert [client.get(panel_of(execution)).status_code for client in (Client(), stranger, admin)] == [
        403,
        403,
        200,
    ]
    delete([execution.pk])
    assert [admin.get(f"{LIST}{pk}/panel/").status_code for pk in (execution.pk, "nonsense", "9" * 30)] == [
        404
    ] * 3


def signed_in_as(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.create(username=name, is_staff=True))
    return client


def test_the_text_of_the_panel_says_one_task_or_many_and_no_share_of_what_failed(admin: Client) -> None:
    assert "1 of 1 task has ended, 1 with an error." in part(admin.get(panel_of(with_tasks("Error"))))
    assert "2 of 2 tasks have ended, 1 stopped." in part(admin.get(panel_of(with_tasks("Success", "Stopped"))))
    assert "It has no tasks: its status is set by hand." in part(admin.get(panel_of(with_tasks())))
    assert "Its task" in part(admin.get(panel_of(with_tasks("Success"))))
    assert "100% of" not in admin.get(page_of(with_tasks("Error", "Stopped"))).content.decode()


def test_the_page_groups_its_errors_and_shows_its_first_tasks(admin: Client) -> None:
    execution = with_tasks(*["Error"] * 3, *["Success"] * 25)
    with_tasks("Error")

    shown = admin.get(page_of(execution))
    page = text(shown)

    grouped = r"Errors by message .* it is Error 3 20"
    assert re.search(rf"{grouped}.* History: ", page), "they stand at the status"
    assert re.search(grouped, part(admin.get(panel_of(execution)))), "an open page follows them"
    assert page.count("it is Success") == 20
    all_tasks = f"{TASKS}?execution__id__exact={execution.pk}"
    assert {f'href="{all_tasks}"', f'href="{all_tasks}&amp;status__exact=Error"'} <= set(
        re.findall(r'href="[^"]*"', shown.content.decode())
    )


def test_a_task_is_named_by_its_job_and_the_first_argument_of_that(admin: Client) -> None:
    one, long = NewJob("shop.mirror", ["nginx <b>"], job_id="of one"), NewJob("shop.mirror", ["x" * 90])
    execution = start("SCAN", [[one], [long], [NewJob("shop.clean", kwargs={"days": 7})]])
    of_another_program = with_tasks("Running").tasks.get()
    Task.objects.filter(pk=of_another_program.pk).update(job_id="its own")
    other = lacking("view_job")

    for address in (page_of(execution), f"{TASKS}?execution__id__exact={execution.pk}"):
        page = text(admin.get(address))
        assert "shop.mirror: nginx &lt;b&gt;" in page
        assert f"shop.mirror: {'x' * 25}…" in page
        assert "shop.clean" in page
        assert 'title="of one"' in admin.get(address).content.decode()
        unnamed = text(other.get(address))
        assert ("of one" in unnamed, "shop." in unnamed) == (True, False)
    assert "its own" in text(admin.get(TASKS))


def test_the_pages_of_a_parent_and_of_its_child_lead_to_each_other_in_no_more_queries(admin: Client) -> None:
    parent = started("first")
    admin.get(page_of(parent))  # the first page of a process has one query more
    alone = queries(admin, page_of(parent))
    children = [create(NewExecution("SCAN", parent=parent.pk)) for _ in range(3)]
    tasks = [Link.objects.get(child=child).task_id for child in children]

    for address in (page_of(parent), f"{TASKS}?execution__id__exact={parent.pk}"):
        page = admin.get(address).content.decode()
        for child in children:
            assert f'execution <a href="{page_of(child)}" class="text-link">{child.pk}</a>' in page
    assert page_of(children[0]) in admin.get(f"{TASKS}{tasks[0]}/change/").content.decode()
    assert page_of(parent) in admin.get(page_of(children[0])).content.decode()
    assert "Parent" not in text(admin.get(page_of(parent)))
    assert queries(admin, page_of(parent)) == alone


def failed_delivery(execution: Execution) -> None:
    receiver = Subscription.objects.create(name="our receiver", url="https://example.com/", secret="s")
    Delivery.objects.create(
        subscription=receiver,
        execution_id=execution.pk,
        vendor_type="SCAN_ALL",
        revision=1,
        from_status="Running",
        to_status="Error",
        changed_at=timezone.now(),
        last_error="it answered 500",
    )


def test_the_page_shows_where_it_is_its_quarantine_and_its_deliveries(
    admin: Client, queue: ExecutionQueue
) -> None:
    execution = with_tasks("Error")
    quarantine([execution.pk], 5, {execution.pk: "a <b>bad</b> row"})
    failed_delivery(execution)

    page = admin.get(page_of(execution))
    place = part(admin.get(f"{LIST}{execution.pk}/place/"))

    assert "after 5 failed refreshes: a &lt;b&gt;bad&lt;/b&gt; row" in page.content.decode()
    [deliveries] = re.findall(r'href="([^"]+)">Its deliveries', page.content.decode())
    assert "it answered 500" in text(admin.get(deliveries))
    queue.mark([f"{execution.pk}:SCAN_ALL"])
    queue.heartbeat("worker-1")
    queue.claim("worker-1", 10)
    claimed = part(admin.get(f"{LIST}{execution.pk}/place/"))

    assert "ago and waits for a worker that is free." in claimed
    assert "Its status is what its tasks say: see" in place
    assert "It is in quarantine since" in place


def lacking(codename: str) -> Client:
    """A person who has every permission but this one."""
    client = signed_in_as("other")
    User.objects.get(username="other").user_permissions.set(Permission.objects.exclude(codename=codename))
    return client


def test_who_may_not_view_jobs_sees_nothing_of_them_on_the_pages_of_their_execution_and_task(
    admin: Client,
) -> None:
    execution = started("job")
    its_jobs = Job.objects.filter(task__execution=execution)
    its_jobs.update(kwargs={"word": "a secret"}, state=JobState.RUNNING, run=1, node=1, process=1)
    task = execution.tasks.get()
    shown = {
        page_of(execution): "/running/",
        f"{LIST}{execution.pk}/running/": "a.job",
        f"{TASKS}{task.pk}/change/": "a secret",
    }

    def seen(client: Client) -> list[tuple[int, bool]]:
        answers = {words: client.get(address) for address, words in shown.items()}
        return [(one.status_code, words in one.content.decode()) for words, one in answers.items()]

    other = lacking("view_job")
    assert seen(admin) == [(200, True)] * 3
    assert seen(other) == [(200, False), (403, False), (200, False)]
    assert "/job/?" not in other.get(page_of(execution)).content.decode(), "its page would refuse them"
    failed(execution, "job")
    its_jobs.update(kwargs={}, state=JobState.ENDED, node=None, process=None)
    JobEnd.objects.create(job_id=task.pk, revision=task.status_revision, traceback="a secret")
    assert (seen(admin)[2], seen(other)[2]) == ((200, True), (200, False))


def test_who_may_not_view_deliveries_is_not_led_to_them_by_the_page_of_their_execution(admin: Client) -> None:
    execution = with_tasks("Error")
    for client, expected in ((admin, True), (lacking("view_delivery"), False)):
        page = text(client.get(page_of(execution)))
        assert "Its tasks, unfinished ones first" in page
        assert ("Its deliveries" in page) is expected


def test_one_task_is_stopped_after_a_question_and_it_is_noted(admin: Client) -> None:
    execution = started("a", "b")
    task = Task.objects.get(job_id="a")
    address = f"{TASKS}{task.pk}/stop/"

    asked = admin.get(address)
    before = statuses(execution)
    done = admin.post(address, {"confirmed": "yes"})

    assert f"Stop task {task.pk}?" in asked.content.decode()
    assert before == ("Running", {"a": "Pending", "b": "Pending"})
    assert done.headers["Location"] == f"{TASKS}{task.pk}/change/"
    assert told(done) == ["success: It is stopped."]
    assert statuses(execution) == ("Running", {"a": "Stopped", "b": "Pending"})
    assert list(AuditEntry.objects.values_list("verb", "kind", "target")) == [("stop", "task", str(task.pk))]
    *_, again = told(admin.post(address, {"confirmed": "yes"}))
    assert again == "warning: It had ended before."
    assert AuditEntry.objects.count() == 1


def test_an_action_on_a_row_that_stays_locked_says_to_try_again(admin: Client) -> None:
    execution = started("a")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
    with statement_held_open("SELECT FROM execution WHERE id = %s FOR UPDATE", [execution.pk]):
        [said] = told(act(admin, LIST, "stop", [execution.pk]))
    assert said.startswith("error: PostgreSQL: another transaction has held the row for too long")
    assert execution.status == "Running"


def test_one_failed_job_runs_again_with_the_jobs_after_it_and_no_other(admin: Client) -> None:
    execution = start(
        "SCAN",
        [in_a_row(*(NewJob("a.job", job_id=job) for job in ("a", "then"))), [NewJob("a.job", job_id="b")]],
    )
    failed(execution, "a", "b")
    report([Report(Task.objects.get(job_id="then").pk, "Stopped", 0)])
    refresh([execution.pk])
    task = Task.objects.get(job_id="a")
    assert statuses(execution) == ("Error", {"a": "Error", "then": "Stopped", "b": "Error"})

    done = admin.post(f"{TASKS}{task.pk}/retry/", {"confirmed": "yes"})

    assert told(done) == ["success: 2 jobs of its chain will run once more."]
    assert statuses(execution) == ("Running", {"a": "Pending", "then": "Pending", "b": "Error"})
    *_, again = told(admin.post(f"{TASKS}{task.pk}/retry/", {"confirmed": "yes"}))
    assert again.startswith("warning: Nothing runs again")


def test_the_actions_of_a_task_are_those_that_would_do_something(admin: Client) -> None:
    def titles(task: Task) -> list[str]:
        return [one["title"] for one in admin.get(f"{TASKS}{task.pk}/change/").context["page_actions"]]

    execution = started("job")
    job, other = execution.tasks.get(), with_tasks("Error").tasks.get()

    assert titles(job) == ["Stop"]
    failed(execution, "job")
    assert titles(job) == ["Run again"]
    assert titles(other) == [], "no job, so its runner tries again"
    assert titles(with_tasks("Running").tasks.get()) == ["Stop"]
    assert titles(with_tasks("Success").tasks.get()) == []


def test_a_viewer_cannot_act_on_a_task() -> None:
    viewer = signed_in("view_task", "view_execution")
    execution = started("a")
    task = execution.tasks.get()

    refused = [viewer.post(f"{TASKS}{task.pk}/{verb}/", {"confirmed": "yes"}) for verb in ("stop", "retry")]

    assert [one.status_code for one in refused] == [403, 403]
    assert viewer.get(f"{TASKS}{task.pk}/change/").context["page_actions"] == []
    assert statuses(execution) == ("Running", {"a": "Pending"})


def test_the_page_of_errors_groups_those_of_the_chosen_time(admin: Client) -> None:
    assert "No task has failed in this time." in text(admin.get(ERRORS))
    with_tasks("Error", "Error")
    with_tasks("Error", vendor="RETENTION")
    old = with_tasks("Error", vendor="GARBAGE_COLLECTION")
    Task.objects.filter(execution=old).update(
        end_time=timezone.now() - timedelta(days=3), status_message="old <b>"
    )

    day, everything = text(admin.get(ERRORS)), admin.get(ERRORS, {"since": ""})

    assert re.search(r"By message .* it is Error 3 20.* By vendor .*SCAN_ALL 2 .*RETENTION 1 .* By hour", day)
    assert "GARBAGE_COLLECTION" not in day
    assert "GARBAGE_COLLECTION 1" in text(everything)
    assert "old &lt;b&gt;" in everything.content.decode()
    assert admin.get(ERRORS, {"since": "\x00"}).status_code == 200
    assert signed_in_as("stranger").get(ERRORS).status_code == 403


def test_an_empty_list_offers_nothing_that_cannot_be_made(admin: Client) -> None:
    deliveries = text(admin.get("/admin/harbor_executions/delivery/"))
    assert "Create a new item" not in deliveries
    assert "Deliveries: none" in deliveries
    assert "Nothing matches" in text(admin.get(LIST, {"q": "nothing"}))


def test_times_are_written_in_one_way_and_name_their_zone(admin: Client) -> None:
    execution = with_tasks("Success")
    pages = (LIST, page_of(execution), f"{TASKS}{execution.tasks.get().pk}/change/")
    for address in (*pages, "/admin/django_celery_beat/periodictask/", "/admin/auth/user/"):
        page = text(admin.get(address))
        assert re.findall(r"\b\d{1,2}:\d\d (?:a|p)\.m\.|\b[A-Z][a-z]{2,3}\. \d{1,2}, \d{4}", page) == []
        for time in re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.{4}", page):
            assert time.endswith(" UTC")


def test_pages_and_checks_take_the_times_of_a_project_without_zones(admin: Client, settings: Settings) -> None:
    execution = started("one")
    Terms.objects.create(execution=execution, vendor_type=execution.vendor_type, deadline=timezone.now())
    settings.USE_TZ = False
    connection.close()  # it reads times as it was told when it was made
    try:
        assert {admin.get(one).status_code for one in (LIST, page_of(execution), TASKS, ERRORS, LOG)} == {200}
        Execution.objects.update(status="Error", end_time=timezone.now())
        Task.objects.update(update_time=timezone.now() - timedelta(hours=1))
        ((_, drift),) = found("status.drift")
        assert "1 status differs" in drift
        Subscription.objects.create(name="n", url="https://h/", secret=new_secret(), statuses=[])
        refresh([execution.pk])
        write_deliveries()
        (change,) = read_changes(Delivery.objects.all()).values()
        assert change.at.tzinfo is None
        assert json.loads(body_of(change, "standard"))["data"]["at"].endswith("Z")
    finally:
        connection.close()


def test_a_project_that_separates_thousands_has_whole_ids_in_forms_and_links(
    admin: Client, settings: Settings
) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    with connection.cursor() as cursor:
        cursor.execute("ALTER SEQUENCE execution_id_seq RESTART 12345")
    execution = started("one")
    asked = admin.post(LIST, {"action": "stop", "_selected_action": [execution.pk], "index": 0})
    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked.content.decode()))
    admin.post(LIST, form)
    execution.refresh_from_db()
    assert execution.status == "Stopped"
    page = admin.get(page_of(execution)).content.decode()
    links = re.findall(r'href="[^"]*[?&;](?:q|task__execution__id__exact)=([^"&]*)"', page)
    assert (set(links), 'data-every="15000"' in page) == ({"12345"}, True)
    graph = render_to_string("tasks/admin/job_graph.html", {"boxes": [1], "width": 1234, "height": 5678})
    assert 'viewBox="0 0 1234 5678"' in graph


def test_pages_are_sent_compressed_and_the_api_is_not(admin: Client) -> None:
    for _ in range(20):
        with_tasks("Success")

    page = admin.get(LIST, headers={"Accept-Encoding": "gzip"})
    plain = admin.get(LIST)
    docs = admin.get("/api/v1/openapi.json", headers={"Accept-Encoding": "gzip"})

    assert page.headers["Content-Encoding"] == "gzip"
    assert b"Executions" in gzip.decompress(page.content)
    assert len(page.content) * 4 < len(plain.content)
    assert "Content-Encoding" not in plain.headers
    assert "Content-Encoding" not in docs.headers


def test_an_execution_that_is_deleted_while_its_page_is_made_is_not_found(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = with_tasks("Success")
    count = tasks_admin.progress_of

    def deleted_before(pk: int) -> Any:
        delete([pk])
        return count(pk)

    monkeypatch.setattr(tasks_admin, "progress_of", deleted_before)
    assert admin.get(page_of(execution)).status_code == 302


def test_an_unknown_address_has_our_page(admin: Client) -> None:
    response = admin.get("/nothing")
    assert response.status_code == 404
    assert "There is nothing at this address." in text(response)


def test_a_search_finds_a_vendor_beyond_those_that_the_filter_lists(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_refresh.executions.admin.filters.MAX_VENDORS", 1)
    with_tasks("Error", vendor="RETENTION")
    last = with_tasks("Error", vendor="SCAN")
    assert ids_shown(admin.get(LIST, {"q": "SCAN"})) == [last.pk]
