"""The screens of subscriptions and deliveries."""

import pytest
from django.test import Client
from pytest_django import Settings

from executions.deliveries import subscriptions
from executions.deliveries.deliverer import Deliverer
from executions.deliveries.subscriptions import Wish
from executions.models import Delivery, Subscription
from tests.integration.admin_client import act, signed_in, told
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import receiver

pytestmark = pytest.mark.usefixtures("database", "redis")

SUBSCRIPTIONS = "/admin/harbor_executions/subscription/"
DELIVERIES = "/admin/harbor_executions/delivery/"
FORM = {
    "name": "pager",
    "url": "http://127.0.0.1:9/",
    "vendor_types": "REPLICATION,SCAN_ALL",
    "statuses": ["Error"],
    "triggers": "",
    "payload": "standard",
    "enabled": "on",
}


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)


def test_a_subscription_is_made_and_its_secret_is_shown_once(admin: Client) -> None:
    made = admin.post(f"{SUBSCRIPTIONS}add/", FORM)
    row = Subscription.objects.get()
    assert (row.vendor_types, row.statuses, row.triggers) == (["REPLICATION", "SCAN_ALL"], ["Error"], [])
    assert row.secret in made.content.decode()
    assert "no-store" in made["Cache-Control"]
    for page in (SUBSCRIPTIONS, f"{SUBSCRIPTIONS}{row.pk}/change/"):
        shown = admin.get(page)
        assert shown.status_code == 200
        assert row.secret not in shown.content.decode()


def test_a_subscription_is_changed_through_its_use_case(admin: Client) -> None:
    admin.post(f"{SUBSCRIPTIONS}add/", FORM)
    Subscription.objects.update(failures=7, failing_since="2026-01-01T00:00Z", retry_at="2099-01-01T00:00Z")
    before = Subscription.objects.get()
    admin.post(f"{SUBSCRIPTIONS}{before.pk}/change/", {**FORM, "statuses": [], "enabled": ""})
    row = Subscription.objects.get()
    assert (row.statuses, row.enabled, row.failures, row.retry_at, row.secret) == (
        [],
        False,
        0,
        None,
        before.secret,
    )


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "ftp://example.com/", "http://u:p@127.0.0.1/"])
def test_an_address_that_is_not_allowed_is_refused_in_the_form(admin: Client, url: str) -> None:
    shown = admin.post(f"{SUBSCRIPTIONS}add/", {**FORM, "url": url})
    assert shown.status_code == 200
    assert "url" in str(shown.context["adminform"].form.non_field_errors())
    assert not Subscription.objects.exists()


def test_a_name_that_is_taken_is_refused_in_the_form(admin: Client) -> None:
    admin.post(f"{SUBSCRIPTIONS}add/", FORM)
    assert admin.post(f"{SUBSCRIPTIONS}add/", FORM).status_code == 200
    assert Subscription.objects.count() == 1


def test_a_handler_is_shown_and_not_changed(admin: Client) -> None:
    row = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    assert "x.y" in admin.get(SUBSCRIPTIONS).content.decode()
    assert admin.get(f"{SUBSCRIPTIONS}{row.pk}/change/").status_code == 200
    assert admin.post(f"{SUBSCRIPTIONS}{row.pk}/change/", FORM).status_code == 403


def test_a_webhook_is_tested_and_deleted(admin: Client) -> None:
    with receiver() as one:
        row = subscriptions.create(Wish("pager", one.url))
        ended(1)
        Deliverer().deliver()
        assert told(act(admin, SUBSCRIPTIONS, "send_test", [row.pk])) == ["success: pager answered 204."]
        one.status = 500
        assert told(act(admin, SUBSCRIPTIONS, "send_test", [row.pk]))[-1] == "error: pager: it answered 500"
    assert told(act(admin, SUBSCRIPTIONS, "delete_chosen", [row.pk]))[-1] == "success: pager is deleted."
    assert not Subscription.objects.exists()
    assert not Delivery.objects.exists()


def test_dead_letters_are_shown_and_sent_again(admin: Client) -> None:
    with receiver(status=410) as one:
        subscriptions.create(Wish("pager", one.url))
        ended(3)
        Deliverer().deliver()
    first = Delivery.objects.earliest("pk")
    page = admin.get(f"{DELIVERIES}?state__exact=dead").content.decode()
    assert "it answered 410" in page
    assert admin.get(f"{DELIVERIES}{first.pk}/change/").status_code == 200
    assert told(act(admin, DELIVERIES, "send_again", [first.pk])) == [
        "success: 1 dead letters are sent again. Others were not dead."
    ]
    assert states() == {"dead": 2, "pending": 1}
    shown = told(act(admin, DELIVERIES, "send_all_again", [first.pk]))
    assert shown[-1] == "success: 2 dead letters are sent again."
    assert states() == {"pending": 3}


def test_to_see_is_not_to_change(database: str) -> None:
    client = signed_in("view_subscription", "view_delivery")
    row = subscriptions.create(Wish("pager", "http://127.0.0.1:9/"))
    for page in (SUBSCRIPTIONS, DELIVERIES, f"{SUBSCRIPTIONS}{row.pk}/change/"):
        assert client.get(page).status_code == 200
    assert client.get(f"{SUBSCRIPTIONS}add/").status_code == 403
    assert client.post(f"{SUBSCRIPTIONS}{row.pk}/change/", FORM).status_code == 403
    for name in ("send_test", "delete_chosen"):
        act(client, SUBSCRIPTIONS, name, [row.pk])
    assert Subscription.objects.count() == 1
