"""The screens of subscriptions and deliveries."""

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import AuditEntry, Callback, Delivery, Subscription
from harbor_refresh.executions.news.callbacks import record
from harbor_refresh.executions.news.deliveries import deliverer, subscriptions
from tests.integration.admin_client import act, signed_in, text, told
from tests.integration.concurrency import in_background, statement_held_open, wait_until
from tests.integration.database_state import waiting_for_locks
from tests.integration.executions.api.api_client import Program, token
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import receiver

pytestmark = pytest.mark.usefixtures("database", "redis", "loopback")

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


DELETED = "DELETE FROM execution_subscription"
TAKEN = (
    "INSERT INTO execution_subscription (name, kind, url, secret, handler, payload, vendor_types, statuses, "
    "triggers, enabled, failures) "
    "VALUES ('pager', 'webhook', 'http://x/', 'x', '', 'standard', '{}', '{}', '{}', TRUE, 0)"
)


@pytest.mark.parametrize(
    ("page", "meanwhile", "why"),
    [
        ("{}/change/", DELETED, "there is no webhook {}"),
        ("add/", TAKEN, "there is a subscription with the name 'pager' already"),
    ],
    ids=["deleted", "taken"],
)
def test_a_webhook_that_another_request_has_deleted_or_made_meanwhile_is_not_saved(
    admin: Client, page: str, meanwhile: str, why: str
) -> None:
    pk = subscriptions.create("another", "http://127.0.0.1:9/").pk
    with (
        statement_held_open(meanwhile) as other,
        in_background(lambda: admin.post(SUBSCRIPTIONS + page.format(pk), FORM)) as saved,
    ):
        wait_until(lambda: waiting_for_locks() == 1, "the form to wait for the other request")
        other.commit()
        answer = saved()
    assert (answer.status_code, answer["Location"]) == (302, SUBSCRIPTIONS)
    assert told(answer) == [f"error: The webhook is not saved: {why.format(pk)}."]
    assert not AuditEntry.objects.exists()


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


def test_a_webhook_above_the_most_is_refused_in_the_form_and_the_others_can_be_changed(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_SUBSCRIPTIONS", 1)
    admin.post(f"{SUBSCRIPTIONS}add/", FORM)
    shown = admin.post(f"{SUBSCRIPTIONS}add/", {**FORM, "name": "another"})
    assert shown.status_code == 200
    assert "which is the most" in str(shown.context["adminform"].form.non_field_errors())
    row = Subscription.objects.get()
    assert admin.post(f"{SUBSCRIPTIONS}{row.pk}/change/", {**FORM, "name": "changed"}).status_code == 302
    assert Subscription.objects.get().name == "changed"


def test_a_handler_is_shown_and_not_changed(admin: Client) -> None:
    row = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    assert "x.y" in admin.get(SUBSCRIPTIONS).content.decode()
    assert admin.get(f"{SUBSCRIPTIONS}{row.pk}/change/").status_code == 200
    assert admin.post(f"{SUBSCRIPTIONS}{row.pk}/change/", FORM).status_code == 403


def test_a_webhook_is_tested_and_deleted(admin: Client) -> None:
    with receiver() as one:
        row = subscriptions.create("pager", one.url)
        ended(1)
        deliverer.deliver()
        assert told(act(admin, SUBSCRIPTIONS, "send_test", [row.pk])) == ["success: pager answered 204."]
        one.status = 500
        assert told(act(admin, SUBSCRIPTIONS, "send_test", [row.pk]))[-1] == "error: pager: it answered 500"
    assert told(act(admin, SUBSCRIPTIONS, "delete_chosen", [row.pk]))[-1] == "success: pager is deleted."
    assert not Subscription.objects.exists()
    assert not Delivery.objects.exists()


def test_the_page_of_a_webhook_has_its_state_and_its_last_error_and_sends_a_test(admin: Client) -> None:
    def shown(client: Client) -> str:
        return text(client.get(f"{SUBSCRIPTIONS}{row.pk}/change/").content.decode())

    with receiver(status=500) as one:
        row = subscriptions.create("pager", one.url)
        assert re.search("State Works .*Waits until - .*Failing since - .*Last error -", shown(admin))
        ended(1)
        deliverer.deliver()
        began, retry_at = timezone.now() - timedelta(minutes=4), timezone.now() + timedelta(minutes=2)
        Subscription.objects.update(failures=5, failing_since=began, retry_at=retry_at)
        until = f"Waits until {retry_at:%Y-%m-%d %H:%M:%S} UTC"
        assert re.search(f"State Waits .*{until} .*Last error it answered 500", shown(admin))
        send = f"{SUBSCRIPTIONS}{row.pk}/send_test/"
        assert "Send a test to subscription" in text(admin.get(send).content.decode())
        one.status = 204
        assert told(admin.post(send, {"confirmed": "yes"}))[-1] == "success: pager answered 204."
    assert admin.get(f"{DELIVERIES}?subscription__id__exact={row.pk}").context["cl"].result_count == 1
    Delivery.objects.update(next_at=timezone.now())
    ended(21)
    deliverer.write_deliveries()
    assert "Last error it answered 500" in shown(admin), "changes that came later are not tried yet"
    User.objects.update(username="another")
    assert "Last error" not in shown(signed_in("view_subscription")), "it is of a delivery"


def test_the_subscription_of_a_callback_that_executions_have_is_not_deleted(admin: Client) -> None:
    (execution,) = ended(1)
    record(execution.pk, [Callback(handler="x.y", statuses=["Success"])])
    row = Subscription.objects.get()
    assert told(act(admin, SUBSCRIPTIONS, "delete_chosen", [row.pk])) == [
        "error: callback x.y is not deleted: executions have callbacks of x.y, which would be lost."
    ]
    assert Subscription.objects.exists()
    assert not AuditEntry.objects.exists()


def dead_letters(count: int) -> Delivery:
    """Have so many deliveries refused for good; return the first."""
    with receiver(status=410) as one:
        subscriptions.create("pager", one.url)
        ended(count)
        deliverer.deliver()
    return Delivery.objects.earliest("pk")


def test_dead_letters_are_shown_and_sent_again(admin: Client) -> None:
    first = dead_letters(3)
    page = admin.get(f"{DELIVERIES}?state__exact=dead").content.decode()
    assert "it answered 410" in page
    assert admin.get(f"{DELIVERIES}{first.pk}/change/").status_code == 200
    assert told(act(admin, DELIVERIES, "send_again", [first.pk])) == ["success: 1 dead letter is sent again."]
    assert states() == {"dead": 2, "pending": 1}
    shown = told(act(admin, DELIVERIES, "send_all_again", [first.pk]))
    assert shown[-1] == "success: 2 dead letters are sent again."
    assert states() == {"pending": 3}


def test_a_list_that_does_not_offer_all_rows_refuses_an_action_on_all_rows(admin: Client) -> None:
    first = dead_letters(2)
    for across in ("1", "on"):
        form = {"action": "send_again", "_selected_action": [first.pk], "index": 0, "select_across": across}
        assert admin.post(DELIVERIES, form).headers["Location"] == f"{DELIVERIES}?e=1"
    assert states() == {"dead": 2}
    admin.post(DELIVERIES, form | {"select_across": "0"})
    assert states() == {"dead": 1, "pending": 1}


def test_an_index_finds_the_deliveries_of_an_execution(admin: Client) -> None:
    for name in ("pager", "chat"):
        row = subscriptions.create(name, "http://127.0.0.1:9/")
        Delivery.objects.bulk_create(
            Delivery(subscription=row, execution_id=number, revision=1, changed_at=row.created_at)
            for number in range(10_000)
        )
    program = Program(token(Scope.READ))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE execution_delivery, execution_subscription")
        with CaptureQueriesContext(connection) as queries:
            assert len(program.get("/deliveries?execution=7")["items"]) == 2
            assert len(admin.get(DELIVERIES, {"q": "7"}).context["cl"].result_list) == 2
        asked = [one["sql"] for one in queries if '"execution_delivery"."execution_id" = 7' in one["sql"]]
        assert len(asked) == 3
        for one in asked:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {one}")
            plan = cursor.fetchone()[0][0]["Plan"]
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 50, plan  # the index alone has 80


def test_to_see_is_not_to_change(database: str) -> None:
    client = signed_in("view_subscription", "view_delivery")
    row = subscriptions.create("pager", "http://127.0.0.1:9/")
    for page in (SUBSCRIPTIONS, DELIVERIES, f"{SUBSCRIPTIONS}{row.pk}/change/"):
        assert client.get(page).status_code == 200
    assert client.get(f"{SUBSCRIPTIONS}add/").status_code == 403
    assert client.post(f"{SUBSCRIPTIONS}{row.pk}/change/", FORM).status_code == 403
    for name in ("send_test", "delete_chosen"):
        act(client, SUBSCRIPTIONS, name, [row.pk])
    assert Subscription.objects.count() == 1


def test_only_the_form_shows_the_path_of_an_address(database: str) -> None:
    """A path or a query may be a secret. The list and the page of a person who may not change it show the host."""
    row = subscriptions.create("chat", "http://127.0.0.1:9/services/x7Zq9vKp?token=a1b2c3")
    form = f"{SUBSCRIPTIONS}{row.pk}/change/"
    viewer, admin = signed_in("view_subscription", "view_delivery"), Client()
    admin.force_login(User.objects.create_superuser("admin"))
    for client, page in ((admin, SUBSCRIPTIONS), (viewer, SUBSCRIPTIONS), (viewer, form)):
        shown = client.get(page).content.decode()
        assert "http://127.0.0.1:9/…" in shown
        assert "x7Zq9vKp" not in shown
        assert "a1b2c3" not in shown
    assert row.url in admin.get(form).content.decode()


@pytest.mark.parametrize("lookup", ["url__contains", "url", "secret__startswith", "old_secret__contains"])
def test_no_filter_tells_what_an_address_or_a_secret_holds(database: str, lookup: str) -> None:
    """By whether the row is still listed it could be guessed, a character at a time. The page has no filter."""
    subscriptions.create("chat", "http://127.0.0.1:9/services/x7Zq9vKp")
    viewer = signed_in("view_subscription")
    answer = viewer.get(SUBSCRIPTIONS, {lookup: "x7Zq9vKp"})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{SUBSCRIPTIONS}?e=1")


def test_a_secret_is_rotated_after_a_question_and_shown_once(admin: Client) -> None:
    old = subscriptions.create("pager", "http://127.0.0.1:9/")
    page = f"{SUBSCRIPTIONS}{old.pk}/"
    assert "Rotate the secret" in admin.get(f"{page}change/").content.decode()
    asked = admin.get(f"{page}rotate/").content.decode()
    assert "The old secret signs as well" in asked
    assert Subscription.objects.get().secret == old.secret
    answer = admin.post(f"{page}rotate/", {"confirmed": "yes", "old_secret_seconds": "3600"})
    row = Subscription.objects.get()
    assert row.secret != old.secret
    assert row.live_secrets == [row.secret, old.secret]
    assert row.secret in answer.content.decode()
    assert old.secret not in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    shown = admin.get(f"{page}change/").content.decode()
    assert "2 secrets until" in shown
    assert row.secret not in shown
    entry = AuditEntry.objects.get()
    detail = f"the old secret signs until {row.old_secret_until:%Y-%m-%d %H:%M:%S} UTC"
    assert (entry.verb, entry.target, entry.detail) == ("rotate", str(old.pk), detail)


def test_a_rotation_with_a_time_that_is_not_offered_asks_again(admin: Client) -> None:
    row = subscriptions.create("pager", "http://127.0.0.1:9/")
    chosen = {"confirmed": "yes", "old_secret_seconds": "5"}
    asked = admin.post(f"{SUBSCRIPTIONS}{row.pk}/rotate/", chosen)
    assert "The old secret signs as well" in asked.content.decode()
    assert Subscription.objects.get().secret == row.secret


def test_only_webhooks_are_rotated_and_only_by_users_who_may_change_them(admin: Client) -> None:
    handler = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    webhook = subscriptions.create("pager", "http://127.0.0.1:9/")
    form = {"confirmed": "yes", "old_secret_seconds": "0"}
    assert "Rotate the secret" not in admin.get(f"{SUBSCRIPTIONS}{handler.pk}/change/").content.decode()
    refused = admin.post(f"{SUBSCRIPTIONS}{handler.pk}/rotate/", form)
    assert told(refused) == ["error: The secret is not rotated: there is no webhook 1."]
    assert admin.post(f"{SUBSCRIPTIONS}999/rotate/", form).status_code == 404
    assert admin.post(f"{SUBSCRIPTIONS}x/rotate/", form).status_code == 404
    viewer = Client()
    User.objects.filter(username="operator").update(is_superuser=False)
    viewer.force_login(User.objects.get(username="operator"))
    assert viewer.post(f"{SUBSCRIPTIONS}{webhook.pk}/rotate/", form).status_code == 403
    assert Subscription.objects.get(pk=webhook.pk).secret == webhook.secret


def test_a_word_with_a_comma_which_the_api_takes_outlives_the_form(admin: Client) -> None:
    words = {"vendor_types": ["nightly, Berlin"], "triggers": ["a,b"]}
    row = subscriptions.create("pager", "http://127.0.0.1:9/", **words)
    page = f"{SUBSCRIPTIONS}{row.pk}/change/"
    shown = admin.get(page).context["adminform"].form
    given = {name: shown[name].value() for name in words}
    admin.post(page, {**FORM, **given, "name": "renamed"})
    row.refresh_from_db()
    assert (row.name, row.vendor_types, row.triggers) == ("renamed", *words.values())


def test_the_log_of_actions_names_the_zone_of_a_moment_that_has_one(settings: Settings) -> None:
    row = Subscription(old_secret_ends_at=datetime.fromisoformat("2099-01-01T12:00Z"))
    assert subscriptions.in_words(row) == "the old secret signs until 2099-01-01 12:00:00 UTC"
    settings.USE_TZ = False
    row.old_secret_ends_at = datetime.fromisoformat("2099-01-01T12:00")
    assert subscriptions.in_words(row) == "the old secret signs until 2099-01-01 12:00:00"
