"""The actions of the list of executions: each asks first, on the rows chosen or on all that match."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import AuditEntry, Execution, Quarantine, Task
from harbor_refresh.executions.news.audit import Word
from harbor_refresh.executions.queries import chosen_pages
from harbor_refresh.tasks.admin import execution_actions
from tests.integration.admin_client import act, signed_in, told
from tests.integration.database_state import rows
from tests.integration.operations.actions.sample_bulk import reported, statuses, with_jobs
from tests.integration.sample_actions import actions, asked, work_off
from tests.integration.sample_executions import drifted, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")

LIST = "/admin/harbor_executions/execution/"
VERBS = ["refresh", "stop", "retry", "resume", "remove"]


def ask(client: Client, verb: str, ids: list[int], query: str = "", *, across: bool = False, **more: Any) -> Any:
    """Choose rows, or all that match, and run the action."""
    form = {"action": f"{verb}", "_selected_action": ids, "index": 0, "select_across": int(across)}
    return client.post(LIST + query, form | more)


def confirm(client: Client, page: Any, query: str = "") -> Any:
    """Send the form of a confirmation, as a browser does."""
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.content.decode())
    form: dict[str, list[str]] = {}
    for name, value in fields:
        form.setdefault(name, []).append(value)
    form.pop("csrfmiddlewaretoken", None)
    return client.post(LIST + query, form)


def said(page: Any) -> str:
    """The text of the page, in one line."""
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page.content.decode(), flags=re.DOTALL)
    return " ".join(text.split())


def entries() -> list[tuple[str, str, str, str, str]]:
    ordered = AuditEntry.objects.order_by("pk")
    return list(ordered.values_list("by", "verb", "target", "outcome", "detail"))


#: Of what each question says that will happen.
EFFECTS = {
    "refresh": "Brings each status to what the tasks say, without the queue.",
    "stop": "Waiting jobs do not begin any more, running jobs are asked to stop.",
    "retry": "Each failed job runs once more",
    "resume": "Each job that was stopped runs once more.",
    "remove": "are deleted with them, for good. Executions that have not ended are not deleted: stop them first.",
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_action_asks_first_and_says_how_many_and_what_will_happen(admin: Client, verb: str) -> None:
    executions = with_jobs(3)
    page = ask(admin, verb, [one.pk for one in executions[:2]])
    assert page.status_code == 200
    assert "2 executions" in said(page)
    assert EFFECTS[verb] in said(page)
    assert statuses() == {"Running": 3}
    assert entries() == []
    across = ask(admin, verb, [executions[0].pk], "?vendor=SCAN", across=True)
    assert "3 executions" in said(across)
    assert "that match this filter: vendor type SCAN ." in said(across)
    assert not actions().exists()


def test_the_rows_chosen_are_stopped_and_no_other(admin: Client) -> None:
    one, other, third = with_jobs(3)
    page = ask(admin, "stop", [one.pk, other.pk])
    assert told(confirm(admin, page)) == ["success: 2 executions stopped."]
    assert [status_of(row) for row in (one, other, third)] == ["Stopped", "Stopped", "Running"]
    assert entries() == [("operator", "stop", str(row.pk), "done", "") for row in (one, other)]


def test_stopped_failed_and_ended_executions_run_again_or_are_deleted(admin: Client) -> None:
    stopped, failed, done = with_jobs(1)[0], with_jobs(1, "FAILED")[0], with_jobs(1, "DONE")[0]
    stop(stopped.pk)
    reported([failed], "Error")
    reported([done], "Success")
    every = [stopped.pk, failed.pk, done.pk]
    act(admin, LIST, "resume", every)
    act(admin, LIST, "retry", every)
    assert statuses() == {"Running": 2, "Success": 1}
    assert told(act(admin, LIST, "remove", every)) == [
        "success: 1 execution resumed.",
        f"info: Left as they are: {failed.pk}, {done.pk}.",
        "success: 1 execution retried.",
        f"info: Left as they are: {stopped.pk}, {done.pk}.",
        "success: 1 execution deleted.",
        f"info: Left as they are: {stopped.pk}, {failed.pk}.",
    ]
    assert set(Execution.objects.values_list("pk", flat=True)) == {stopped.pk, failed.pk}
    assert [one[1:4] for one in entries()] == [
        (verb, str(pk), "done" if pk == changed else "unchanged")
        for verb, changed in (("resume", stopped.pk), ("retry", failed.pk), ("delete", done.pk))
        for pk in every
    ]


def test_all_that_match_are_stopped_in_the_background(admin: Client) -> None:
    executions, others = with_jobs(60), with_jobs(2, "GC")
    query = "?vendor=SCAN&status__exact=Running&p=1"
    page = ask(admin, "stop", [executions[0].pk], query, across=True)
    late = with_jobs(1, "SCAN_LATE")[0]
    Execution.objects.filter(pk=late.pk).update(vendor_type="SCAN")
    answer = confirm(admin, page, query)
    action = actions().get()
    assert answer["Location"] == f"{LIST}{action.pk}/change/"
    asked_for = {"vendor_type": "SCAN", "statuses": ["Running"]}
    assert action.extra_attrs == {"verb": "stop", "filter": asked_for, "by": "operator", "from": "admin"}
    assert entries() == [("operator", "stop", str(action.pk), "done", "vendor type SCAN, statuses Running")]
    assert AuditEntry.objects.get().address == "127.0.0.1"
    work_off()
    assert statuses() == {"Stopped": 60, "Running": 3}
    assert {status_of(one) for one in (*others, late)} == {"Running"}, "it began after the count that was shown"
    running = admin.get(f"{LIST}{action.pk}/running/").json()["parts"]["running"]
    assert "60 changed, 0 left as they are, 0 failed" in running


def test_a_confirmation_counts_no_further_than_its_bound(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_actions, "COUNT_SECONDS", -1)
    monkeypatch.setattr(chosen_pages, "COUNTED_WINDOW", 4)
    executions = with_jobs(7)
    page = ask(admin, "stop", [executions[0].pk], across=True)
    assert "Stop more than 4 executions?" in said(page)
    assert "that match this filter: none, so all executions" in said(page)


def test_nothing_that_matches_any_more_is_told(admin: Client) -> None:
    (execution,) = with_jobs(1)
    answer = ask(admin, "stop", [execution.pk], "?vendor=NONE", across=True)
    assert told(answer) == ["warning: Nothing was done: no execution matches any more."]


def test_the_list_offers_all_that_match_only_if_there_are_more_than_it_shows(admin: Client) -> None:
    with_jobs(3)
    assert "Choose all that match" not in said(admin.get(LIST))
    with_jobs(60, "MORE")
    assert "Choose all that match (63)" in said(admin.get(LIST))
    assert "Choose all that match (60)" in said(admin.get(LIST + "?vendor=MORE"))


INEXACT = [
    *("colour=red", "status__in=Error,Running", "vendor=SCAN&vendor=GC", "status__exact=Succeed"),
    *("vendor_id=" + "x" * 256, "quarantined=no", "has_jobs=no", "start_time_from_0=yesterday"),
    *("q=two words", "q=a=1 b=2", "q=nothing-of-that-name", "vendor=SCAN&q=SCAN", "vendor=" + "x" * 65),
]


def test_a_list_that_an_action_cannot_follow_exactly_is_refused(admin: Client) -> None:
    (execution,) = with_jobs(1)
    for query in INEXACT:
        ask(admin, "stop", [execution.pk], "?" + query, across=True, confirmed="yes")
        assert not actions().exists(), query
    assert status_of(execution) == "Running"


def test_a_confirmation_with_an_impossible_bound_touches_what_there_is_now(admin: Client) -> None:
    (execution,) = with_jobs(1)
    for highest in ("x", "-1", "9" * 18):
        ask(admin, "stop", [execution.pk], across=True, confirmed="yes", highest=highest)
    work_off()
    assert [one.status for one in actions()] == ["Success"] * 3
    assert status_of(execution) == "Stopped"


def test_who_may_not_delete_executions_may_not_go_on_with_a_deletion() -> None:
    action = asked(Word.DELETE)
    action.stop()
    client = signed_in("view_execution", "change_execution", "view_task")
    assert buttons(client, action) == {"refresh"}
    act(client, LIST, "resume", [action.pk])
    client.post(f"{LIST}{action.pk}/resume/", {"confirmed": "yes"})
    ask(client, "resume", [action.pk], f"?q={action.pk}", across=True, confirmed="yes")
    ask(client, "resume", [action.pk], "?vendor=BULK_ACTION", across=True, confirmed="yes")
    task = action.tasks.earliest("pk")
    client.post(f"/admin/harbor_executions/task/{task.pk}/retry/", {"confirmed": "yes"})
    assert (actions().count(), status_of(action)) == (1, "Stopped")
    User.objects.update(is_superuser=True)
    client.post(f"{LIST}{action.pk}/resume/", {"confirmed": "yes"})
    assert status_of(action) == "Running"


def buttons(client: Client, execution: Execution) -> set[str]:
    page = client.get(f"{LIST}{execution.pk}/change/").content.decode()
    found = set(re.findall(rf'page-action"><a href="{LIST}{execution.pk}/(\w+)/"', page))
    return found - {"place", "running"}  # parts of the page that are loaded after it


def test_a_page_offers_what_would_do_something(admin: Client) -> None:
    going, stopped, failed = with_jobs(1)[0], with_jobs(1, "STOPPED")[0], with_jobs(1, "FAILED")[0]
    stop(stopped.pk)
    reported([failed], "Error")
    assert buttons(admin, going) == {"refresh", "stop"}
    assert buttons(admin, stopped) == {"refresh", "resume", "remove"}
    assert buttons(admin, failed) == {"refresh", "retry", "remove"}


def test_a_quarantined_execution_offers_its_release_and_no_refresh(admin: Client) -> None:
    (execution,) = with_jobs(1)
    quarantine([execution.pk], 5, {execution.pk: "why"})
    assert buttons(admin, execution) == {"release", "stop"}
    admin.post(f"{LIST}{execution.pk}/release/", {"confirmed": "yes"})
    assert buttons(admin, execution) == {"refresh", "stop"}
    admin.post(f"{LIST}{execution.pk}/release/", {"confirmed": "yes"})
    assert [entry[1:4] for entry in entries()] == [
        ("release", str(execution.pk), "done"),
        ("release", str(execution.pk), "unchanged"),
    ]


def test_a_refresh_leaves_what_is_in_quarantine_and_enters_the_rest(admin: Client) -> None:
    held, other = drifted(), drifted()
    quarantine([held.pk], 5)
    shown = told(act(admin, LIST, "refresh", [held.pk, other.pk]))
    assert shown == ["success: 1 execution refreshed.", f"info: Left as they are: {held.pk}."]
    assert [entry[1:4] for entry in entries()] == [
        ("refresh", str(held.pk), "unchanged"),
        ("refresh", str(other.pk), "done"),
    ]


@pytest.mark.parametrize("verb", ["stop", "retry", "resume", "remove", "release"])
def test_a_page_that_is_opened_or_sent_without_its_answer_does_nothing(admin: Client, verb: str) -> None:
    (execution,) = with_jobs(1, tasks=2)
    one, other = execution.tasks.order_by("pk")
    if verb != "stop":
        report([Report(one.pk, "Error", 1), Report(other.pk, "Stopped", 1)])
        refresh([execution.pk])
    if verb == "release":
        quarantine([execution.pk], 5)
    before = rows(Execution), rows(Task), rows(Quarantine)
    for answer in (admin.get, admin.post):
        answer(f"{LIST}{execution.pk}/{verb}/")
    assert (rows(Execution), rows(Task), rows(Quarantine)) == before
    assert entries() == []
