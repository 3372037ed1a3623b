"""The admin's screens: their content, their queries, their permissions, and their actions."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from tracemalloc import get_traced_memory, start, stop
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.admin import site
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from harbor_refresh.executions.admin import lists
from harbor_refresh.executions.admin.lists import MAX_SHOWN, CappedPaginator
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.tasks.admin import execution_actions
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.admin_client import act, ids_shown, told
from tests.integration.operations.actions.sample_bulk import with_jobs

pytestmark = pytest.mark.usefixtures("database", "queue")

LIST = "/admin/harbor_executions/execution/"
TASKS = "/admin/harbor_executions/task/"
JOBS = "/admin/harbor_tasks/job/"
CHANGES = "/admin/harbor_executions/statuschange/"
QUARANTINED = f"{LIST}?quarantined=yes"


def made(vendor: str = "SCAN_ALL", jobs: tuple[str, ...] = ("job-1", "job-2")) -> Execution:
    new = NewExecution(vendor, tasks=[NewTask(job_id=job) for job in jobs])
    return create(new)


def made_wrong(vendor: str = "SCAN_ALL") -> Execution:
    """Create an execution whose tasks have all succeeded, and that was not refreshed since."""
    execution = made(vendor)
    tasks = Task.objects.filter(execution=execution)
    report([Report(task.pk, "Success", 1) for task in tasks])
    return execution


@contextmanager
def traced() -> Iterator[None]:
    start()
    try:
        yield
    finally:
        stop()


def state(*executions: Execution) -> list[tuple[str, int]]:
    rows = Execution.objects.filter(pk__in=[one.pk for one in executions]).order_by("pk")
    return list(rows.values_list("status", "revision"))


def test_the_list_shows_the_newest_first_with_status_and_counts(admin: Client) -> None:
    old, new = made(), made()
    first = Task.objects.filter(execution=new).earliest("pk")
    report([Report(first.pk, "Error", 1)])

    response = admin.get(LIST)

    assert ids_shown(response) == [new.pk, old.pk]
    page = response.content.decode()
    assert "1 Pending" in page
    assert "1 Error" in page
    assert "2 Pending" in page
    assert f"{TASKS}?execution__id__exact={new.pk}&amp;status__exact=Error" in page


def test_no_list_counts_further_than_the_cap(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 3)
    for _ in range(5):
        made()

    with CaptureQueriesContext(connection) as captured:
        page = admin.get(LIST).content.decode()

    counts = [one["sql"] for one in captured if "COUNT" in one["sql"] and '"task"' not in one["sql"]]
    assert len(counts) == 1
    assert "LIMIT 4" in counts[0]
    assert "The first 3 rows: search or filter for the others" in page


def test_facets_are_off_since_they_would_count_every_row(admin: Client) -> None:
    assert not admin.get(f"{LIST}?_facets=True").context["cl"].add_facets


def test_the_tasks_of_one_execution_come_unfinished_first(admin: Client) -> None:
    made()
    execution = made()
    first, second = Task.objects.filter(execution=execution).order_by("pk")
    report([Report(second.pk, "Success", 1)])

    response = admin.get(TASKS, {"execution__id__exact": execution.pk})

    assert ids_shown(response) == [first.pk, second.pk]


def test_the_list_counts_the_tasks_of_an_execution_up_to_a_bound(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_COUNTED", 2)
    small, large = made(), made(jobs=("a", "b", "c"))
    page = admin.get(LIST).content.decode()
    cells = re.findall(r"<t[dr][^>]*field-progress.*?</td>", page, re.DOTALL)
    assert [("more than" in one, "2 Pending" in one, "Pending" in one) for one in cells] == [
        (True, False, False),
        (False, True, True),
    ]
    for execution, count in ((small, "2 Pending"), (large, "3 Pending")):
        assert count in admin.get(f"{LIST}{execution.pk}/change/").content.decode()


@pytest.mark.parametrize(
    ("address", "model"),
    [(LIST, Execution), (TASKS, Task), (CHANGES, StatusChange)],
)
def test_nothing_can_be_added_changed_or_deleted(admin: Client, address: str, model: type[Any]) -> None:
    execution = made_wrong()
    refresh([execution.pk])
    row = model.objects.latest("pk")
    before = list(model.objects.values())

    refused = [
        admin.get(f"{address}add/").status_code,
        admin.post(f"{address}add/", {"status": "Error"}).status_code,
        admin.post(f"{address}{row.pk}/change/", {"status": "Error"}).status_code,
        admin.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code,
    ]
    act(admin, address, "delete_selected", [row.pk])

    assert refused == [403, 403, 403, 403]
    assert list(model.objects.values()) == before


ODD = ["\x00", "abc", "-1", "²", "9" * 5000, "x" * 3000]
LISTS = [LIST, TASKS, JOBS, CHANGES]
#: All that have a search, but those of other packages.
SEARCHED = [*LISTS, *(f"/admin/harbor_executions/{one}/" for one in ("delivery", "subscription", "apitoken"))]


@pytest.mark.parametrize("address", SEARCHED)
def test_a_search_of_a_thousand_words_makes_a_short_statement(admin: Client, address: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert admin.get(address, {"q": "1 " * 1_000}).status_code == 200
    assert max(len(one["sql"]) for one in queries) < 10_000
    assert len(queries) <= 12


def test_no_memory_is_kept_of_the_address_of_a_list(admin: Client) -> None:
    """A list links to itself, with all of its parameters."""

    def kept(count: int) -> int:
        before = get_traced_memory()[0]
        for number in range(count):
            assert admin.get(TASKS, {"q": f"{number}" * 20_000}).status_code == 200
        gc.collect()
        return get_traced_memory()[0] - before

    with traced():
        kept(2)
        assert kept(5) < 100_000


def test_a_filter_with_a_value_that_no_row_can_have_is_answered_as_a_bad_lookup(admin: Client) -> None:
    """As Django answers a filter that does not exist: back to the list, which says so. Or nothing is found."""
    made()
    names = ["q", "p", "id", "status", "status__exact", "vendor", "vendor_type", "name", "extra_attrs"]
    names += ["execution__id__exact", "task__execution__id__exact", "start_time__year", "no_such_filter"]
    for address in LISTS:
        answers = {(name, value): admin.get(address, {name: value}) for name in names for value in ODD}
        assert {answer.status_code for answer in answers.values()} == {200, 302}
        led = {answer.headers["Location"] for answer in answers.values() if answer.status_code == 302}
        assert led == {f"{address}?e=1"}
        assert admin.get(f"{address}?e=1").status_code == 200
        assert answers["no_such_filter", "abc"].status_code == 302
        if address in (LIST, TASKS, JOBS):
            assert answers["status__exact", "\x00"].status_code == 302


@pytest.mark.parametrize("model", list(site._registry), ids=lambda model: model._meta.label)
def test_only_the_filters_of_a_page_narrow_its_list(admin: Client, model: type[Model]) -> None:
    """Django alone takes each column with each operator, and PostgreSQL would match this for minutes."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    odd = ("regex", "iregex", "icontains", "trigram_similar", "in")
    names = [f"{field.name}__{lookup}" for field in model._meta.concrete_fields for lookup in odd]
    with CaptureQueriesContext(connection) as queries:
        answers = {name: admin.get(address, {name: r"^(.+)(.+)(.+)\1\2\3$"}) for name in names}
    assert not [one["sql"] for one in queries if r"\1\2\3" in one["sql"]]
    assert {answer.status_code for answer in answers.values()} <= {200, 302, 400}  # Django: of passwords


@pytest.mark.parametrize("address", SEARCHED)
def test_a_list_is_sorted_only_by_the_columns_that_it_offers_and_by_each_once(admin: Client, address: str) -> None:
    """Django takes each column of the table, and PostgreSQL would sort all rows."""

    def order(chosen: str) -> Any:
        return admin.get(address, {"o": chosen}).context["cl"].queryset.query.order_by

    usual, columns = order(""), admin.get(address).context["cl"].list_display
    offered = [number for number, name in enumerate(columns) if name == "started" and address == LIST]
    for number in range(len(columns)):
        assert (order(f"{number}") != usual, order(f"-{number}") != usual) == (number in offered,) * 2
        assert order(f"{number}.{number}") == order(f"-{number}.x") == usual


def test_a_list_reads_no_attributes_and_no_arguments(admin: Client) -> None:
    """One may take 2 MB."""
    (execution,) = with_jobs(1)
    quarantine([execution.pk], 5)
    pages = [LIST, TASKS, JOBS, QUARANTINED, "/admin/harbor_tasks/pause/", f"{LIST}{execution.pk}/change/"]
    with CaptureQueriesContext(connection) as queries:
        assert {admin.get(page).status_code for page in pages} == {200}
    read = [one["sql"] for one in queries if re.search(r'"(extra_attrs|args|kwargs)"(,| FROM)', one["sql"])]
    assert read == []


@pytest.mark.parametrize("size", [20, MAX_SHOWN, 20_000])
def test_a_page_shows_the_beginning_of_long_attributes(admin: Client, size: int) -> None:
    text = "x" * (size - len('{"a": ""}'))
    execution = create(NewExecution("TEST", extra_attrs={"a": text}, tasks=[NewTask("j", {"a": text})]))
    for page in (f"{LIST}{execution.pk}/change/", f"{TASKS}{execution.tasks.get().pk}/change/"):
        shown = admin.get(page).content.decode()
        assert shown.count("x" * min(len(text), MAX_SHOWN - 7)) == 1
        assert ("The first 10,000 of 20,000 characters" in shown) == (size > MAX_SHOWN)
        assert len(shown) < 200_000


def test_an_object_with_an_impossible_id_is_not_found_and_an_action_on_it_does_nothing(admin: Client) -> None:
    """Pages of an object lead to the index, as Django does; what acts on it says 404."""
    wrong = made_wrong()
    quarantine([wrong.pk], 5)
    for value in ODD:
        name = quote(value, safe="")
        assert {admin.get(f"{address}{name}/change/").status_code for address in LISTS} == {302}
        acts = [f"{LIST}{name}/{act}/" for act in ("refresh", "stop", "retry")]
        assert {admin.get(address).status_code for address in acts} == {404}
        assert {admin.post(address, {"confirmed": "yes"}).status_code for address in acts} == {404}
        for action in ("refresh", "stop", "remove", "release"):
            answer = act(admin, LIST, action, [wrong.pk, value])  # type: ignore[list-item]
            assert (answer.status_code, answer.headers["Location"]) == (302, f"{LIST}?e=1")
    assert (state(wrong), Quarantine.objects.count()) == ([("Running", 0)], 1)


def test_the_page_of_an_execution_leads_to_its_history(admin: Client) -> None:
    execution, other = made_wrong(), made_wrong()
    refresh([execution.pk, other.pk])
    address = f"{CHANGES}?q={execution.pk}"
    assert f'href="{address}"' in admin.get(f"{LIST}{execution.pk}/change/").content.decode()
    (change,) = admin.get(address).context["cl"].result_list
    assert (change.execution_id, change.to_status) == (execution.pk, "Success")


@pytest.mark.parametrize("term", ["\x00", "a\x00b"])
def test_autocomplete_in_a_host_project_finds_no_execution_for_nul(admin: Client, term: str) -> None:
    made()
    words = {"app_label": "harbor_executions", "model_name": "task", "field_name": "execution", "term": term}
    assert admin.get("/admin/autocomplete/", words).json()["results"] == []


def test_refresh_now_names_the_executions_that_could_not_be_refreshed(admin: Client) -> None:
    wrong, poisoned = made_wrong(), made_wrong()
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE execution ADD CONSTRAINT poison CHECK (id <> {poisoned.pk} OR status <> 'Success')"
        )

    response = act(admin, LIST, "refresh", [wrong.pk, poisoned.pk])

    assert told(response) == [
        "success: 1 execution refreshed.",
        f'error: Execution {poisoned.pk}: new row for relation "execution" violates check constraint "poison"',
    ]
    assert state(wrong, poisoned) == [("Success", 1), ("Running", 0)]


def test_release_ends_the_quarantine_and_marks(admin: Client, queue: ExecutionQueue, redis: Any) -> None:
    held, kept, _ = made_wrong(), made_wrong(), made_wrong()
    quarantine([held.pk, kept.pk], 5, {held.pk: "a row is bad"})
    redis.flushall()
    listed = admin.get(QUARANTINED)
    assert ids_shown(listed) == [kept.pk, held.pk]
    assert 'harbor-label-danger" title="a row is bad">Quarantined<' in listed.content.decode()

    with CaptureQueriesContext(connection) as queries:
        response = act(admin, QUARANTINED, "release", [held.pk])

    assert "extra_attrs" not in str([one["sql"] for one in queries]), "one may take 2 MB"
    assert told(response) == ["success: 1 execution released from quarantine and will be refreshed soon."]
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [kept.pk]
    assert redis.smembers(queue.keys.queue) == {f"{held.pk}:SCAN_ALL".encode()}


def test_more_than_a_request_can_release_is_refused_before_a_question(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_actions, "MAX_CHOSEN", 1)
    quarantine([made().pk, made().pk], 5)
    form = {"action": "release", "_selected_action": [1], "index": 0, "select_across": 1}
    assert told(admin.post(QUARANTINED, form)) == [
        "error: Nothing was done: 1 at once is the most. Type: manage.py harbor quarantine --release-all."
    ]
    assert Quarantine.objects.count() == 2
