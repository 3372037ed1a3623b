"""API tokens: what is stored, when they stop working, and their screen."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import IntegrityError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from harbor_refresh.executions.api import api_tokens
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import ApiToken
from tests.integration.admin_client import act, signed_in, told
from tests.integration.concurrency import in_background, transaction_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.api.api_client import Program, token

LIST = "admin:harbor_executions_apitoken_changelist"
ADD = "admin:harbor_executions_apitoken_add"


def test_only_a_hash_of_a_token_is_stored(database: str) -> None:
    row, made = api_tokens.make("runners", report=True, created_by="operator")
    row.refresh_from_db()
    stored = {name: getattr(row, name) for name in ("name", "hint", "may_read", "may_report", "may_manage")}
    assert stored == {
        "name": "runners",
        "hint": made[:8],
        "may_read": True,
        "may_report": True,
        "may_manage": False,
    }
    assert bytes(row.digest) == hashlib.sha256(made.encode()).digest()
    assert api_tokens.recognise(made) == row
    assert (len(made), made[:3]) == (46, "hr_")


@pytest.mark.parametrize("wrong", ["", "hr_", "hr_" + "a" * 43, "x" * 46, "hr_" + "é" * 43, "\ud800" * 46])
def test_what_is_no_token_is_not_recognised(database: str, wrong: str) -> None:
    api_tokens.make("runners")
    assert api_tokens.recognise(wrong) is None


@pytest.mark.parametrize("address", ["/api/v1/executions", "/metrics", "/service/notifications/tasks/1"])
def test_only_the_log_says_why_the_database_is_down(
    database: str, client: Client, address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody may send a wrong token."""
    sent = {"Authorization": f"Bearer hr_{'a' * 43}", "X-Forwarded-For": "192.0.2.1"}
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    answer = client.generic("POST" if "service" in address else "GET", address, headers=sent)
    connection.close()
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert set(re.findall(r"127\.0\.0\.1|port|Postgre\w*|refused", answer.content.decode())) == set()
    (line,) = [one.getMessage() for one in caplog.records if one.name == "django.request"]
    assert line.startswith(f"Service Unavailable: {address}: ")
    assert "127.0.0.1" in line


def test_the_last_use_is_noted_once_a_minute(database: str) -> None:
    row, made = api_tokens.make("runners")
    api_tokens.recognise(made)
    row.refresh_from_db()
    first = row.last_used_at
    assert first is not None
    api_tokens.recognise(made)
    row.refresh_from_db()
    assert row.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    api_tokens.recognise(made)
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert row.last_used_at >= first


def test_a_use_that_another_request_is_noting_is_not_noted_again(database: str) -> None:
    row, made = api_tokens.make("runners")
    moment = timezone.now()
    with (
        transaction_held_open(lambda: ApiToken.objects.update(last_used_at=moment)) as commit,
        in_background(lambda: api_tokens.recognise(made)) as finish,
    ):
        wait_until(waiting_for_locks, "the request to wait for the row")
        commit()
        assert finish() == row
    row.refresh_from_db()
    assert row.last_used_at == moment


def test_a_token_that_may_do_nothing_cannot_be_stored(database: str) -> None:
    with pytest.raises(IntegrityError):
        api_tokens.make("useless", read=False)


def form(**more: Any) -> dict[str, Any]:
    return {"name": "runners", "may_read": "on", "expires_at_0": "", "expires_at_1": "", **more}


def test_a_token_made_in_the_admin_is_shown_once(admin: Client) -> None:
    answer = admin.post(reverse(ADD), form(may_report="on"))
    shown = answer.context["value"]
    assert shown in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    row = ApiToken.objects.get()
    assert (row.created_by, row.may_report, row.may_manage) == ("operator", True, False)
    assert Program(shown).get("/executions") == {"items": [], "next": None}
    assert [one.object_repr for one in LogEntry.objects.all()] == [f"runners ({shown[:8]}…)"]
    assert shown not in admin.get(reverse(LIST)).content.decode()
    assert shown not in str(LogEntry.objects.values())


def test_a_name_is_used_once_and_a_token_may_something(admin: Client) -> None:
    token(Scope.READ, name="runners")
    for wrong in (form(), {**form(name="other"), "may_read": ""}):
        assert admin.post(reverse(ADD), wrong).context["errors"]
    assert ApiToken.objects.count() == 1


def test_tokens_are_revoked_in_the_list(admin: Client) -> None:
    made = token(Scope.READ, name="runners")
    pk = ApiToken.objects.get().pk
    for _ in range(2):
        answer = act(admin, reverse(LIST), "revoke", [pk])
    assert told(answer) == [
        "success: runners is revoked: requests with it are answered with 401.",
        "warning: runners was revoked before.",
    ]
    Program(made).get("/executions", 401)
    assert "Revoked" in admin.get(reverse(LIST)).content.decode()


def test_only_users_with_the_permissions_make_and_revoke(database: str) -> None:
    token(Scope.READ, name="runners")
    viewer = signed_in("view_apitoken")
    assert viewer.get(reverse(LIST)).status_code == 200
    assert viewer.post(reverse(ADD), form(name="mine")).status_code == 403
    act(viewer, reverse(LIST), "revoke", [ApiToken.objects.get().pk])
    assert ApiToken.objects.filter(revoked_at=None).count() == 1
