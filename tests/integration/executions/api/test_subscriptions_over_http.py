"""Subscriptions and deliveries over HTTP."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.signals import post_save

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.errors import DatabaseDown
from harbor_refresh.executions.models import AuditEntry, Delivery, Subscription
from harbor_refresh.executions.news.deliveries import claims, deliverer, subscriptions
from tests.integration.database_state import rows
from tests.integration.executions.api.api_client import Program, token
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import receiver

pytestmark = pytest.mark.usefixtures("loopback")


def test_a_subscription_is_made_shown_changed_and_deleted(program: Program) -> None:
    made = program.post("/subscriptions", {"name": "pager", "url": "http://127.0.0.1:9/"}, 201)
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made == {
        "id": made["id"],
        "name": "pager",
        "kind": "webhook",
        "url": "http://127.0.0.1:9/",
        "handler": "",
        "payload": "standard",
        "vendor_types": [],
        "statuses": ["Stopped", "Error", "Success"],
        "triggers": [],
        "enabled": True,
        "created_at": made["created_at"],
        "failures": 0,
        "failing_since": None,
        "retry_at": None,
        "old_secret_until": None,
    }
    path = f"/subscriptions/{made['id']}"
    assert program.get(path) == made
    assert program.get("/subscriptions") == {"items": [made], "next": None}
    changed = json.loads(program.send("PATCH", path, {"statuses": ["Error"], "enabled": False}).content)
    assert changed == made | {"statuses": ["Error"], "enabled": False}
    for answer in (program.get(path), program.get("/subscriptions"), changed):
        assert secret not in json.dumps(answer)
    program.delete(path)
    program.get(path, 404)
    program.delete(path, 404)
    assert program.send("PATCH", path, {"enabled": True}).status_code == 404


def test_a_subscription_that_another_program_deletes_at_once_was_made(program: Program) -> None:
    def delete(instance: AuditEntry, **_: object) -> None:
        transaction.on_commit(lambda: subscriptions.delete(int(instance.target)))

    post_save.connect(delete, sender=AuditEntry)
    try:
        made = program.post("/subscriptions", {"name": "pager", "url": "http://127.0.0.1:9/"}, 201)
    finally:
        post_save.disconnect(delete, sender=AuditEntry)
    program.get(f"/subscriptions/{made['id']}", 404)


SECRET = "/services/T0001/x7Zq9vKp2mWs4LdE?token=a1b2c3d4e5f6a7b8"
HIDDEN = "http://127.0.0.1:9/…"


def test_only_a_program_that_may_change_an_address_sees_its_path(program: Program) -> None:
    """What the others see is no address, so they cannot save it as one by mistake."""
    made = program.post("/subscriptions", {"name": "chat", "url": f"http://127.0.0.1:9{SECRET}"}, 201)
    made.pop("secret")
    path = f"/subscriptions/{made['id']}"
    reader, manager = Program(token(Scope.READ)), Program(token(Scope.READ, Scope.MANAGE))
    for one, shown in ((reader, made | {"url": HIDDEN}), (manager, made)):
        assert one.get(path) == shown
        assert one.get("/subscriptions") == {"items": [shown], "next": None}
    assert program.send("PATCH", path, {"url": HIDDEN}).status_code == 400
    assert Subscription.objects.get().url == made["url"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "x"}, 422),
        ({"name": "x", "url": "ftp://example.com"}, 400),
        ({"name": "x", "url": "http://10.0.0.1/"}, 400),
        ({"name": "x", "url": "http://u:p@127.0.0.1/"}, 400),
        ({"name": "x", "url": "http://127.0.0.1/", "statuses": ["Succeed"]}, 422),
        ({"name": "x", "url": "http://127.0.0.1/", "secret": "mine"}, 422),
        ({"name": "pager", "url": "http://127.0.0.1/"}, 400),
        *(
            ({"name": "x", "url": "http://127.0.0.1/", **wish}, 422)
            for wish in (
                {"name": ""},
                {"name": "x" * 201},
                {"vendor_types": ["\x00"]},
                {"vendor_types": [""]},
                {"triggers": ["x" * 17]},
                {"triggers": ["x"] * 101},
                {"payload": "xml"},
            )
        ),
    ],
)
def test_a_subscription_that_cannot_be_is_refused(program: Program, body: dict[str, object], status: int) -> None:
    program.post("/subscriptions", {"name": "pager", "url": "http://127.0.0.1:9/"}, 201)
    program.post("/subscriptions", body, status)
    assert Subscription.objects.count() == 1


def test_a_handler_is_shown_and_not_changed(program: Program) -> None:
    row = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    assert program.get(f"/subscriptions/{row.pk}")["handler"] == "x.y"
    assert program.send("PATCH", f"/subscriptions/{row.pk}", {"enabled": False}).status_code == 404
    program.delete(f"/subscriptions/{row.pk}", 404)


def test_deliveries_are_listed_in_pages_and_dead_ones_sent_again(program: Program) -> None:
    with receiver(status=410) as target:
        made = program.post("/subscriptions", {"name": "pager", "url": target.url}, 201)
        executions = ended(5)
        deliverer.deliver()
        page = program.get(f"/deliveries?state=dead&subscription={made['id']}&limit=3")
        rest = program.get(f"/deliveries?state=dead&limit=3&cursor={page['next']}")
        shown = [*page["items"], *rest["items"]]
        assert [row["execution_id"] for row in shown] == [one.pk for one in reversed(executions)]
        assert rest["next"] is None
        assert (shown[0]["from"], shown[0]["to"], shown[0]["last_error"]) == (
            "Running",
            "Success",
            "it answered 410",
        )
        target.status = 204
        first = shown[0]["id"]
        assert program.post(f"/deliveries/{first}/resend") == {"resent": 1}
        program.post(f"/deliveries/{first}/resend", status=409)
        program.post("/deliveries/999999/resend", status=404)
        deliverer.deliver()
        assert states() == {"dead": 4, "delivered": 1}
        assert program.post("/deliveries/resend", {"subscription": made["id"]}) == {"resent": 4}
        program.post("/deliveries/resend", {"subscription": 10**6}, 404)
        deliverer.deliver()
        assert states() == {"delivered": 5}
        assert len(set(target.ids())) == 5  # the ids repeat
    assert program.get(f"/deliveries?execution={executions[0].pk}")["items"][0]["attempts"] == 1


def test_dead_letters_are_sent_again_up_to_a_bound(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "MOST", 3)
    with receiver(status=410) as one:
        program.post("/subscriptions", {"name": "pager", "url": one.url}, 201)
        ended(5)
        deliverer.deliver()
        assert program.post("/deliveries/resend", {}) == {"resent": 3}
        assert program.post("/deliveries/resend", {}) == {"resent": 2}
    assert set(Delivery.objects.values_list("state", "attempts")) == {("pending", 0)}


def test_dead_letters_that_could_not_all_be_sent_again_stay_and_the_log_has_no_entry(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(status=410) as one:
        program.post("/subscriptions", {"name": "pager", "url": one.url}, 201)
        ended(3)
        deliverer.deliver()
    entries, resend = AuditEntry.objects.count(), claims.resend

    def and_then_the_database_is_down(dead: QuerySet[Delivery]) -> int:
        assert resend(dead) == 3
        raise DatabaseDown

    monkeypatch.setattr(claims, "resend", and_then_the_database_is_down)
    program.post("/deliveries/resend", {}, 503)
    assert (states(), AuditEntry.objects.count()) == ({"dead": 3}, entries)


def test_a_test_tells_what_the_receiver_answered(program: Program) -> None:
    with receiver() as one:
        made = program.post("/subscriptions", {"name": "pager", "url": one.url}, 201)
        path, before = f"/subscriptions/{made['id']}/test", rows(Subscription)
        assert program.post(path) == {"delivered": True, "status": 204, "error": ""}
        one.status = 500
        assert program.post(path) == {"delivered": False, "status": 500, "error": "it answered 500"}
        assert json.loads(one.received[0].body)["data"]["execution"]["id"] == 0
    assert (rows(Subscription), rows(Delivery)) == (before, {}), "it is no delivery, and moves no circuit"
    program.post("/subscriptions/999999/test", status=404)


def test_a_rotation_shows_the_new_secret_once_and_tells_how_long_the_old_one_signs(program: Program) -> None:
    made = program.post("/subscriptions", {"name": "pager", "url": "http://127.0.0.1:9/"}, 201)
    old, path = made.pop("secret"), f"/subscriptions/{made['id']}"
    rotated = program.post(f"{path}/rotate-secret", {"old_secret_seconds": 3_600})
    new, until = rotated.pop("secret"), datetime.fromisoformat(rotated["old_secret_until"])
    assert new.startswith("whsec_")
    assert new != old
    assert timedelta(minutes=55) < until - datetime.now(UTC) <= timedelta(hours=1)
    assert rotated == made | {"old_secret_until": rotated["old_secret_until"]}
    assert program.get(path) == rotated
    assert program.get("/subscriptions")["items"] == [rotated]
    entry = AuditEntry.objects.latest("pk")
    assert (entry.verb, entry.kind, entry.target, entry.detail) == (
        "rotate",
        "subscription",
        str(made["id"]),
        f"the old secret signs until {until:%Y-%m-%d %H:%M:%S} UTC",
    )
    for out_of_bounds in (-1, 604_801):
        program.post(f"{path}/rotate-secret", {"old_secret_seconds": out_of_bounds}, 422)
    assert Subscription.objects.get().secret == new
    program.post(f"{path}/rotate-secret", {})  # for a day
    program.post(f"{path}/rotate-secret", {"old_secret_seconds": 0})
    assert AuditEntry.objects.latest("pk").detail == "no old secret signs"
    assert program.get(path)["old_secret_until"] is None


def test_only_a_webhook_is_rotated(program: Program) -> None:
    program.post("/subscriptions/999999/rotate-secret", {}, 404)
    handler = Subscription.objects.create(kind="handler", name="handler x.y", handler="x.y")
    program.post(f"/subscriptions/{handler.pk}/rotate-secret", {}, 404)
