"""The pages of actions on many executions: how far each is, without a reload; stop it, or go on."""

import re
from typing import Any

import pytest
from django.test import Client

from harbor_refresh.executions.actions.bulk import stop_action
from harbor_refresh.executions.models import Action, AuditEntry
from harbor_refresh.executions.models.operations import Origin, Verb
from harbor_refresh.tasks.operations.bulk import work
from tests.integration.admin_client import signed_in, told
from tests.integration.operations.actions.sample_bulk import slices, statuses, with_jobs
from tests.integration.query_counts import queries
from tests.integration.sample_actions import asked

pytestmark = pytest.mark.usefixtures("database", "redis", "small_pages")

ACTIONS = "/admin/harbor_executions/action/"


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from harbor_refresh.tasks.operations import bulk_slice
    from harbor_refresh.tasks.operations.bulk_verbs import VERBS

    monkeypatch.setattr(bulk_slice, "VERBS", {name: replace(verb, page=3) for name, verb in VERBS.items()})


def page_of(action: Action) -> str:
    return f"{ACTIONS}{action.pk}/change/"


def seen(client: Client, action: Action) -> tuple[float | None, bool]:
    """The percent that the open page shows next, and whether it goes on looking."""
    answer = client.get(f"{ACTIONS}{action.pk}/progress/")
    assert "no-store" in answer["Cache-Control"]
    percent = re.search(r'data-percent="([\d.]+)"', (news := answer.json())["parts"]["bar"])
    return float(percent[1]) if percent else None, not news["reload"]


def buttons(client: Client, action: Action) -> set[str]:
    page = client.get(page_of(action)).content.decode()
    return set(re.findall(rf'page-action"><a href="{ACTIONS}{action.pk}/(\w+)/"', page))


def press(client: Client, action: Action, verb: str) -> Any:
    return client.post(f"{ACTIONS}{action.pk}/{verb}/", {"confirmed": "yes"})


def test_its_page_shows_a_bar_that_grows_without_a_reload(admin: Client) -> None:
    with_jobs(9)
    action = asked(Verb.STOP, Origin.ADMIN)
    page = admin.get(page_of(action)).content.decode()
    assert f'data-live="{ACTIONS}{action.pk}/progress/"' in page
    shown = [seen(admin, action)]
    shown += [seen(admin, one) for one in slices(action, seconds=0)]
    assert shown == [(None, True), (33.3, True), (66.7, True), (100.0, False)]
    assert "data-live" not in admin.get(page_of(action)).content.decode()


def test_it_is_stopped_and_goes_on_where_it_ended(admin: Client) -> None:
    with_jobs(9)
    action = asked(Verb.STOP, Origin.ADMIN)
    work(seconds=0)
    assert buttons(admin, action) == {"stop"}
    assert press(admin, action, "stop")["Location"] == page_of(action)
    assert statuses() == {"Stopped": 3, "Running": 6}
    assert buttons(admin, action) == {"resume"}
    press(admin, action, "resume")
    work(seconds=None)
    assert statuses() == {"Stopped": 9}
    assert buttons(admin, action) == set()
    log = AuditEntry.objects.filter(kind="action").order_by("pk").values_list("by", "verb", "target")
    assert list(log) == [("operator", verb, str(action.pk)) for verb in ("stop", "resume")]


def test_what_cannot_be_stopped_or_resumed_any_more_is_told(admin: Client) -> None:
    done = asked(Verb.STOP)
    work(seconds=None)
    ended = f"warning: Nothing was done: action {done.pk} has ended: it is done."
    assert told(press(admin, done, "stop")) == [ended]
    assert "it is done" in told(press(admin, done, "resume"))[-1]
    assert not AuditEntry.objects.filter(kind="action").exists()


def test_the_list_shows_who_asked_for_what_and_how_far_it_is(admin: Client) -> None:
    with_jobs(2)
    asked(Verb.STOP, Origin.ADMIN, vendor_type="SCAN")
    work(seconds=None)
    page = admin.get(ACTIONS).content.decode()
    for text in ("vendor type SCAN", "a test", "100%", "Done"):
        assert text in page
    assert queries(admin, ACTIONS) <= 10
    assert admin.get(ACTIONS + "?q=a+test").context["cl"].result_count == 1
    assert admin.get(ACTIONS + "?q=unknown").context["cl"].result_count == 0


def test_looking_takes_the_view_permission_and_acting_the_change_permission() -> None:
    with_jobs(1)
    action = asked(Verb.STOP)
    client = signed_in("view_action")
    assert seen(client, action) == (None, True)
    assert buttons(client, action) == set()
    assert [press(client, action, verb).status_code for verb in ("stop", "resume")] == [403, 403]
    action.refresh_from_db()
    assert action.state == "queued"


def test_a_page_without_permission_is_none() -> None:
    action = asked(Verb.STOP)
    client = signed_in("view_execution")
    assert client.get(f"{ACTIONS}{action.pk}/progress/").status_code == 403
    assert client.get(page_of(action)).status_code == 403
    assert Client().get(f"{ACTIONS}{action.pk}/progress/").status_code == 403


@pytest.mark.parametrize("action_id", ["99", "x", "9" * 30])
def test_an_action_that_is_not_there_is_not_found(admin: Client, action_id: str) -> None:
    assert admin.get(f"{ACTIONS}{action_id}/progress/").status_code == 404
    assert admin.get(f"{ACTIONS}{action_id}/change/").status_code == 302


def test_who_may_not_delete_executions_may_not_go_on_with_a_deletion() -> None:
    action = asked(Verb.DELETE)
    stop_action(action.pk)
    client = signed_in("view_action", "change_execution")
    assert buttons(client, action) == set()
    press(client, action, "resume")
    action.refresh_from_db()
    assert action.state == "stopped"
