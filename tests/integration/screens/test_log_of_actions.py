"""The log of actions: every source writes who did what, and its page shows it."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.news import audit
from harbor_refresh.executions.news.audit import Origin, Outcome, Person, Target, Word
from tests.integration.admin_client import signed_in
from tests.integration.command_output import said
from tests.integration.executions.api.api_client import Program, token
from tests.integration.operations.actions.sample_bulk import with_jobs
from tests.integration.sample_actions import asked

pytestmark = pytest.mark.usefixtures("database", "redis")

LOG = "/admin/harbor_executions/auditentry/"
Row = tuple[str, str, str, str]


def log(*verbs: str) -> list[Row]:
    """Verb, kind, target and outcome of the entries; of these verbs, or of all."""
    rows = AuditEntry.objects.order_by("pk").values_list("verb", "kind", "target", "outcome")
    return [row for row in rows if not verbs or row[0] in verbs]


@pytest.fixture
def program(database: str) -> Program:
    return Program(token(*Scope, name="runners"))


# each source


def test_what_the_api_refuses_is_no_act(program: Program) -> None:
    (execution,) = with_jobs(1)
    program.delete(f"/executions/{execution.pk}", 412)
    program.post(f"/executions/{execution.pk}/finish", {"status": "Success"}, 409)
    program.post("/executions/999/stop", status=404)
    program.post("/executions/stop", {}, 400)
    program.post("/deliveries/999/resend", status=404)
    assert log() == []


def test_reports_and_new_executions_are_work_and_not_in_the_log(program: Program) -> None:
    made = program.post("/executions", {"vendor_type": "SCAN", "tasks": [{"job_id": "a"}]}, 201)
    assert made
    assert log() == []


def test_the_terminal_writes_every_act() -> None:
    (execution,) = with_jobs(1)
    stop(execution.pk)
    pk = str(execution.pk)
    said("harbor", "resume", pk)
    said("harbor", "stop", pk)
    quarantine([execution.pk], 5)
    said("harbor", "quarantine", "--release", pk)
    said("harbor", "repair", "drift")
    said("harbor", "sweep")
    said("harbor", "repair", "refresh", "--vendor", "SCAN", "--yes")
    said("harbor", "token", "runner")
    made = api_tokens.ApiToken.objects.get().pk
    assert log() == [
        ("resume", "executions", "", "done"),
        ("stop", "executions", "", "done"),
        ("release", "quarantine", pk, "done"),
        ("reconcile", "queue", "", "done"),
        ("sweep", "execution", "", "done"),
        ("refresh", "executions", "", "unchanged"),
        ("create", "token", str(made), "done"),
    ]
    people = {(row.by, row.origin, bool(row.address)) for row in AuditEntry.objects.all()}
    assert people == {(audit.at_terminal().name, "terminal", True)}


def test_a_command_that_changes_nothing_writes_nothing() -> None:
    said("harbor", "repair", "drift", "--dry-run")
    said("harbor", "sweep", "--dry-run")
    said("harbor", "status")
    said("harbor", "quarantine")
    said("harbor", "stop", "--all", "--dry-run")
    said("harbor", "list")
    assert log() == []


def test_the_admin_writes_the_schedule_and_the_accounts_that_are_edited(admin: Client) -> None:
    task = PeriodicTask.objects.exclude(interval=None).earliest("pk")
    form = {"name": task.name, "task": task.task, "interval": task.interval_id, "args": "[]", "kwargs": "{}"}
    admin.post(f"/admin/django_celery_beat/periodictask/{task.pk}/change/", {**form, "headers": "{}"})
    admin.post("/admin/auth/group/add/", {"name": "readers"})
    group = Group.objects.get(name="readers")
    admin.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    assert log() == [
        ("change", "schedule", str(task.pk), "done"),
        ("create", "group", str(group.pk), "done"),
        ("delete", "group", str(group.pk), "done"),
    ]
    assert LogEntry.objects.count() == 3
    assert IntervalSchedule.objects.exists()


# its page


def entered(**different: Any) -> AuditEntry:
    fields: dict[str, Any] = {"by": "anna", "origin": Origin.ADMIN, "address": "10.1.2.3"}
    fields |= {key: different.pop(key) for key in list(different) if key in fields}
    person = Person(fields["by"], fields["origin"], fields["address"])
    word, kind, target = (different.pop(key, value) for key, value in WHAT)
    return audit.note(person, word, kind, target, **different)


WHAT = (("verb", Word.STOP), ("kind", Target.EXECUTION), ("target", 7))


def shown(client: Client, query: str) -> list[int]:
    return [row.pk for row in client.get(LOG + query).context["cl"].result_list]


def test_the_page_shows_who_did_what_from_where_and_how_it_ended(admin: Client) -> None:
    entered(count=3, outcome=Outcome.FAILED, detail="because")
    page = admin.get(LOG).content.decode()
    for text in ("anna", "10.1.2.3", "Stop", "execution 7", "because", "Failed"):
        assert text in page, text
    assert "/admin/harbor_executions/execution/7/change/" in page


def test_an_action_on_many_leads_to_the_execution_that_does_it(admin: Client) -> None:
    action = asked(Word.STOP, Origin.ADMIN, vendor_type="SCAN")
    page = admin.get(LOG).content.decode()
    assert f'{action.pk}/change/" class="text-link">executions, by execution {action.pk}</a>' in page
    assert "vendor type SCAN" in page


def test_the_log_is_filtered_by_person_verb_kind_origin_and_target(admin: Client) -> None:
    a = entered().pk
    b = entered(by="ben", verb=Word.RETRY, target=8).pk
    c = entered(by="cron", origin=Origin.TERMINAL, verb=Word.RECOVER, kind=Target.QUEUE, target="").pk
    found = {"": [c, b, a], "?q=anna": [a], "?q=ann": [], "?q=8": [b], "?verb=stop": [a], "?kind=queue": [c]}
    found |= {"?origin__exact=terminal": [c], "?verb=stop&kind=queue": []}
    assert {query: shown(admin, query) for query in found} == found


@pytest.mark.parametrize("moment", ["2026-01-01T23:59:59%2B23:00", "9999-12-31T23:59:59-23:00", "never"])
def test_a_moment_that_cannot_be_compared_filters_nothing(admin: Client, moment: str) -> None:
    pk = entered().pk
    answer = admin.get(f"{LOG}?at__gte={moment}")
    assert (answer.status_code, answer["Location"]) == (302, f"{LOG}?e=1")
    assert shown(admin, "?e=1") == [pk]


def test_the_page_of_an_execution_leads_to_what_was_done_to_it(admin: Client) -> None:
    one, other = with_jobs(2)
    pk = entered(target=one.pk).pk
    entered(target=other.pk)
    entered(target=one.pk, kind=Target.TASK)
    page = admin.get(f"/admin/harbor_executions/execution/{one.pk}/change/").content.decode()
    found = re.search(rf'href="{LOG}(\?[^"]+)"', page)
    assert found
    assert shown(admin, found[1].replace("&amp;", "&")) == [pk]


def test_the_log_is_read_and_never_edited(admin: Client) -> None:
    pk = entered().pk
    for address in (f"{LOG}add/", f"{LOG}{pk}/delete/"):
        assert admin.get(address).status_code == 403
    admin.post(f"{LOG}{pk}/change/", {"by": "ben"})
    assert AuditEntry.objects.get().by == "anna"
    User.objects.all().delete()
    assert signed_in("view_execution").get(LOG).status_code == 403
