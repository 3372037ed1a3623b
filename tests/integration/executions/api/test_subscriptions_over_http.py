"""Subscriptions and deliveries over HTTP."""

import json

import pytest
from pytest_django import Settings

from executions.deliveries.deliverer import Deliverer
from executions.models import Delivery, Subscription
from tests.integration.executions.api.api_client import Program
from tests.integration.executions.deliveries.changed_executions import ended, states
from tests.integration.executions.deliveries.receiver import receiver


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.REFRESH_DELIVER_NETWORKS = ("127.0.0.1/32",)


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
        Deliverer().deliver()
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
        Deliverer().deliver()
        assert states() == {"dead": 4, "delivered": 1}
        assert program.post("/deliveries/resend", {"subscription": made["id"]}) == {"resent": 4}
        program.post("/deliveries/resend", {"subscription": 10**6}, 404)
        Deliverer().deliver()
        assert states() == {"delivered": 5}
        assert len(set(target.ids())) == 5  # the ids repeat
    assert program.get(f"/deliveries?execution={executions[0].pk}")["items"][0]["attempts"] == 1


def test_all_dead_letters_are_sent_again_page_by_page(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executions.deliveries.dead_letters.PAGE", 2)
    with receiver(status=410) as one:
        program.post("/subscriptions", {"name": "pager", "url": one.url}, 201)
        ended(5)
        Deliverer().deliver()
        assert program.post("/deliveries/resend", {}) == {"resent": 5}
    assert set(Delivery.objects.values_list("state", "attempts")) == {("pending", 0)}


def test_a_test_tells_what_the_receiver_answered(program: Program) -> None:
    with receiver() as one:
        made = program.post("/subscriptions", {"name": "pager", "url": one.url}, 201)
        path = f"/subscriptions/{made['id']}/test"
        assert program.post(path) == {"delivered": True, "status": 204, "error": ""}
        one.status = 500
        assert program.post(path) == {"delivered": False, "status": 500, "error": "it answered 500"}
        assert json.loads(one.received[0].body)["data"]["execution"]["id"] == 0
    program.post("/subscriptions/999999/test", status=404)
