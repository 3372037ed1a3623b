"""What a runner wrote is text on every page of the admin, and a form of another site does nothing."""

import re
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import MAX_VENDOR
from tests.integration.admin_client import signed_in, told

pytestmark = pytest.mark.usefixtures("database", "queue")

#: It ends an attribute, a script and a comment before it begins its own.
HOSTILE = "'\"--></script><script>alert(1)</script><img src=x onerror=alert(2)>"
LABELS = ("execution", "task", "statuschange", "auditentry")


@pytest.fixture
def hostile(database: str) -> Execution:
    """An execution of which each text that a runner may send is hostile."""
    attributes = {HOSTILE: HOSTILE, "repository": [HOSTILE]}
    tasks = [NewTask(job_id=HOSTILE[:64], extra_attrs=attributes)]
    execution = create(
        NewExecution(HOSTILE[:MAX_VENDOR], HOSTILE, trigger="<script>x", extra_attrs=attributes, tasks=tasks)
    )
    task = execution.tasks.get()
    report([Report(task.pk, "Error", 1, HOSTILE)])
    quarantine([execution.pk], 5, {execution.pk: HOSTILE})
    return execution


def pages(execution: Execution) -> list[str]:
    lists = [f"harbor_executions_{label}_changelist" for label in LABELS]
    task = execution.tasks.get()
    search = reverse("admin:harbor_executions_execution_changelist")
    return [
        *(reverse(f"admin:{name}") for name in lists),
        reverse("admin:harbor_executions_execution_change", args=[execution.pk]),
        reverse("admin:harbor_executions_task_change", args=[task.pk]),
        reverse("admin:harbor_executions_task_errors"),
        reverse("admin:index"),
        reverse("admin:harbor_tasks_pause_changelist"),
        f"{search}?quarantined=yes",
        f"{search}?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        f"{search}?{urlencode({'vendor_id': HOSTILE})}",
        f"{search}?{urlencode({'vendor_id': HOSTILE * 4})}",
    ]


def test_what_a_runner_wrote_is_text_on_every_page(hostile: Execution) -> None:
    admin = signed_in(superuser=True)
    shown = 0
    for page in pages(hostile):
        answer = admin.get(page)
        assert answer.status_code == 200, page
        text = answer.content.decode()
        assert "<script>alert" not in text, page
        assert not re.search(r"<img[^>]*onerror", text), page
        shown += "alert(1)" in text
    assert shown >= 8  # the pages do show it


def test_a_form_without_its_token_is_refused_and_changes_nothing(database: str) -> None:
    """Django does this. A view that is exempt by mistake would fail here."""
    user = User.objects.create_superuser("root", password="p")
    other_site = Client(enforce_csrf_checks=True)
    other_site.force_login(user)
    forms = {
        "/admin/harbor_tasks/pause/": {"verb": "pause", "target": "harbor_refresh"},
        "/admin/auth/user/add/": {"username": "new"},
        "/admin/harbor_executions/apitoken/add/": {"name": "mine", "may_manage": "on"},
        "/admin/harbor_executions/execution/": {"action": "delete_selected", "_selected_action": ["1"]},
        "/admin/password_change/": {"old_password": "p"},
    }
    assert {page: other_site.post(page, form).status_code for page, form in forms.items()} == dict.fromkeys(
        forms, 403
    )
    made = [apps.get_model(name) for name in ("harbor_tasks.Pause", "harbor_executions.ApiToken", "auth.User")]
    assert [model.objects.count() for model in made] == [0, 0, 1]


@pytest.mark.parametrize("page", ["limit/%00/change/", "limit/%00/delete/", "pause/%00/history/"])
def test_no_row_has_an_id_that_cannot_be_stored(database: str, page: str) -> None:
    admin = signed_in(superuser=True)
    assert admin.get(f"/admin/harbor_tasks/{page}").status_code in (302, 403, 404)


def test_a_queue_whose_name_cannot_be_stored_is_not_paused(database: str) -> None:
    form = {"verb": "resume", "target": "\x00", "confirmed": "yes"}
    answer = signed_in(superuser=True).post("/admin/harbor_tasks/pause/", form)
    assert told(answer) == ["success: The queue \x00 was not paused."]
