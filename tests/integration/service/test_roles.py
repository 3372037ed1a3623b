"""The ready roles: migrate makes them, and each may do what it is for."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Execution, Quarantine
from harbor_refresh.management import roles
from harbor_refresh.tasks.models import Limit, Pause
from tests.browser.samples import make_samples
from tests.integration.admin_client import act
from tests.integration.operations.actions.sample_bulk import reported, with_jobs
from tests.integration.sample_actions import actions
from tests.integration.sample_executions import status_of

#: Pages of the admin that belong to no model.
SITE = [
    f"/admin/{page}"
    for page in (
        "",
        "password_change/",
        "password_change/done/",
        "jsi18n/",
        "autocomplete/",
        "search/?s=task",
    )
]
ROOT = "root"

pytestmark = pytest.mark.usefixtures("database", "redis")

LIST = "/admin/harbor_executions/execution/"
PAGES = {
    "execution": LIST,
    "task": "/admin/harbor_executions/task/",
    "job": "/admin/harbor_tasks/job/",
    "statuschange": "/admin/harbor_executions/statuschange/",
    "auditentry": "/admin/harbor_executions/auditentry/",
    "subscription": "/admin/harbor_executions/subscription/",
    "delivery": "/admin/harbor_executions/delivery/",
    "periodictask": "/admin/django_celery_beat/periodictask/",
    "apitoken": "/admin/harbor_executions/apitoken/",
    "user": "/admin/auth/user/",
    "group": "/admin/auth/group/",
}
SUBMITTED = {"confirmed": "yes"}


def member(role: str) -> Client:
    user = User.objects.create(username=role, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


def permissions(role: str) -> set[str]:
    return set(Permission.objects.filter(group__name=role).values_list("codename", flat=True))


def changed_by(client: Client) -> dict[str, Any]:
    """What is there after this client has tried every action on an execution, and on its page."""
    going, stopped, failed, held = (with_jobs(1, vendor)[0] for vendor in ("GOING", "STOPPED", "FAILED", "HELD"))
    stop(stopped.pk)
    reported([failed], "Error")
    quarantine([held.pk], 5)
    act(client, LIST, "stop", [going.pk])
    act(client, LIST, "resume", [stopped.pk])
    client.post(f"{LIST}{failed.pk}/retry/", SUBMITTED)
    client.post(f"{LIST}{held.pk}/release/", SUBMITTED)
    act(client, LIST, "remove", [going.pk])
    client.post(f"{LIST}{going.pk}/remove/", SUBMITTED)
    client.post(
        f"{LIST}?vendor=HELD",
        {"action": "refresh", "_selected_action": held.pk, "select_across": 1, "confirmed": "yes", "index": 0},
    )
    return {
        "going": status_of(going) if Execution.objects.filter(pk=going.pk).exists() else "deleted",
        "stopped": status_of(stopped),
        "failed": status_of(failed),
        "held": Quarantine.objects.exists(),
        "actions": actions().count(),
    }


def test_a_viewer_sees_every_page_but_tokens_and_accounts_and_changes_nothing() -> None:
    client = member("viewer")
    seen = {name: client.get(address).status_code for name, address in PAGES.items()}
    assert seen == dict.fromkeys(PAGES, 200) | dict.fromkeys(("apitoken", "user", "group"), 403)
    held = with_jobs(1)[0]
    quarantine([held.pk], 5)
    assert client.get(f"{LIST}{held.pk}/change/").context["page_actions"] == []
    assert 'name="action"' not in client.get(LIST).content.decode()
    assert changed_by(client) == {
        "going": "Running",
        "stopped": "Stopped",
        "failed": "Error",
        "held": True,
        "actions": 0,
    }


def pages_of_the_admin(rows: dict[type[Model], Model]) -> list[str]:
    """The addresses of all pages of all registered screens: with the id of a row, and with an unknown id."""
    addresses = list(SITE)
    for model, screen in admin.site._registry.items():
        base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for pattern in screen.get_urls():
            for key in (rows[model].pk if model in rows else 0, 10**9):
                address = base + re.sub("<[^>]*>", str(key), str(pattern.pattern))
                assert "(" not in address, "a page whose address is not understood here"
                addresses.append(address)
    return list(dict.fromkeys(addresses))


@pytest.mark.parametrize("role", [*roles.ROLES, ROOT])
def test_no_page_of_the_admin_answers_an_error_of_the_server_to_any_role(role: str) -> None:
    """The client raises what a page raises."""
    for name in roles.ROLES:
        member(name)
    User.objects.create_superuser(ROOT)
    CrontabSchedule.objects.get_or_create(minute="0")
    rows = make_samples().rows
    rows[Limit] = Limit.objects.create(name="a.copy", concurrency=1)
    assert [model for model in admin.site._registry if model not in rows] == [Pause]
    client = Client()
    client.force_login(User.objects.get(username=role))
    pages = pages_of_the_admin(rows)
    assert len(pages) > 100
    statuses = {page: client.get(page).status_code for page in pages}
    assert {page: status for page, status in statuses.items() if status not in {200, 302, 403, 404}} == {}
    needed = PeriodicTask.objects.get(name="Reconcile")
    shown = client.get(f"{PAGES['periodictask']}{needed.pk}/change/")
    assert (shown.status_code, b"Reconcile" in shown.content) == (200, True)


def test_an_operator_acts_and_deletes_nothing() -> None:
    client = member("operator")
    assert changed_by(client) == {
        "going": "Stopped",
        "stopped": "Running",
        "failed": "Running",
        "held": False,
        "actions": 1,
    }
    refused = [client.get(PAGES[name]).status_code for name in ("apitoken", "user", "group")]
    assert refused == [403, 403, 403]
    assert client.get("/admin/django_celery_beat/periodictask/add/").status_code == 403
    assert client.get("/admin/harbor_executions/subscription/add/").status_code == 403


def test_only_an_administrator_acts_on_the_schedule() -> None:
    row = PeriodicTask.objects.get(task="tasks.sample")
    for role in roles.ROLES:
        act(client := member(role), PAGES["periodictask"], "disable_tasks", [row.pk])
        assert ("disable_tasks" in client.get(PAGES["periodictask"]).content.decode()) == (role == "administrator")
        row.refresh_from_db()
        assert row.enabled == (role != "administrator")


def test_an_administrator_does_everything_but_edit_accounts() -> None:
    client = member("administrator")
    assert {client.get(address).status_code for address in PAGES.values()} == {200}
    assert changed_by(client)["going"] == "deleted"
    for page in (
        "harbor_executions/apitoken",
        "harbor_executions/subscription",
        "django_celery_beat/periodictask",
    ):
        assert client.get(f"/admin/{page}/add/").status_code == 200
    for page in ("user", "group"):
        assert client.get(f"/admin/auth/{page}/add/").status_code == 403


def test_migrate_changes_no_group_that_exists() -> None:
    group = Group.objects.get(name="operator")
    group.permissions.remove(Permission.objects.get(codename="change_execution"))
    group.permissions.add(Permission.objects.get(codename="delete_execution"))
    before = permissions("operator")
    call_command("migrate", verbosity=0)
    assert permissions("operator") == before
    assert "change_execution" not in before


def test_the_next_migrate_makes_the_group_that_a_killed_one_has_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(role: str, app: str, codename: str) -> bool:
        raise InterruptedError

    before = permissions("operator")
    Group.objects.get(name="operator").delete()
    with monkeypatch.context() as patch:
        patch.setattr(roles, "may", killed)
        with pytest.raises(InterruptedError):
            call_command("migrate", verbosity=0)
    assert not Group.objects.filter(name="operator").exists()
    call_command("migrate", verbosity=0)
    assert permissions("operator") == before


def test_a_group_that_was_deleted_is_made_again_without_members() -> None:
    before = permissions("viewer")
    member("viewer")
    Group.objects.get(name="viewer").delete()
    call_command("migrate", verbosity=0)
    assert permissions("viewer") == before
    assert not User.objects.get(username="viewer").groups.exists()
