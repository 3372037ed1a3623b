"""Subscriptions of webhooks over HTTP, and their deliveries: what was told, what waits, what was given up and can
be sent again. A secret is in the answer that makes or rotates it, and in no other."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import AfterValidator, Field, StringConstraints

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import PageIn, needs, page
from harbor_refresh.executions.api.problems import Problem
from harbor_refresh.executions.api.schemas import NO_NUL, Body, Given, Id, StatusName, Whole, page_of
from harbor_refresh.executions.errors import NoSuchSubscription
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.audit import Outcome, Target, Word, noted, person_of
from harbor_refresh.executions.news.deliveries import addresses, claims, subscriptions
from harbor_refresh.executions.news.deliveries.deliverer import MAX_NAME
from harbor_refresh.executions.news.deliveries.subscriptions import OLD_SECRET_SECONDS
from harbor_refresh.executions.queries.filters import MAX_TRIGGER
from harbor_refresh.executions.status import MAX_VENDOR

router = Router(tags=["Subscriptions"])

Name = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME, pattern=NO_NUL, examples=["chat of the nightly team"])
]
Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2_000),
    Field(
        examples=["https://hooks.example.com/harbor"],
        description="An http or https URL without user and password.",
    ),
]
VendorType = Annotated[str, StringConstraints(min_length=1, max_length=MAX_VENDOR, pattern=NO_NUL)]
Trigger = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TRIGGER, pattern=NO_NUL)]
MAX_LISTED = 100
VendorTypes = Annotated[list[VendorType], Field(max_length=MAX_LISTED)]
Triggers = Annotated[list[Trigger], Field(max_length=MAX_LISTED)]
Statuses = Annotated[list[StatusName], Field(max_length=6)]


class SubscriptionChanges(Body):
    """Fields that are not given stay as they are."""

    name: Name = ""
    url: Url = ""
    vendor_types: VendorTypes = Field(default_factory=list, examples=[["REPLICATION"]], description="Empty: all.")
    statuses: Statuses = Field(default_factory=list, description="Empty: all.")
    triggers: Triggers = Field(default_factory=list, examples=[["SCHEDULE"]], description="Empty: all.")
    payload: Literal["standard", "slack"] = "standard"
    enabled: bool = True


class SubscriptionIn(SubscriptionChanges):
    name: Name
    url: Url
    statuses: Statuses = Field(
        default=["Stopped", "Error", "Success"], description="Empty: all. Default: the final statuses."
    )


class SubscriptionOut(Schema):
    id: int
    name: str
    kind: str = Field(
        description="`webhook`, or a Python function that this API only shows: `handler`, or `callback` of a "
        "single execution."
    )
    url: str = Field(description="Tokens without `manage` see only scheme and host: `https://host/…`.")
    handler: str
    payload: str
    vendor_types: list[str]
    statuses: list[str]
    triggers: list[str]
    enabled: bool
    created_at: datetime
    failures: int = Field(description="The number of failed requests since the last answer.")
    failing_since: datetime | None
    retry_at: datetime | None = Field(
        description="Nothing is sent before this time, because the receiver is down."
    )
    old_secret_until: datetime | None = Field(
        description="Until this time the old secret signs requests, too. Null: there is no old secret."
    )


class SubscriptionForReaders(SubscriptionOut):
    """The address of a webhook may be its secret, so only those who may change it see its path and query."""

    url: Annotated[str, AfterValidator(addresses.origin)]


class CreatedSubscription(SubscriptionOut):
    secret: str = Field(description="The secret that signs requests. It is shown only here.", examples=["whsec_…"])


class RotateIn(Body):
    old_secret_seconds: Whole = Field(
        OLD_SECRET_SECONDS,
        ge=0,
        le=subscriptions.MAX_OLD_SECRET_SECONDS,
        examples=[OLD_SECRET_SECONDS],
        description="How long the old secret still signs requests. 0: the old secret expires now.",
    )


class TrialOut(Schema):
    delivered: bool
    status: int | None = Field(description="Null: there was no answer.")
    error: str


SubscriptionId = Annotated[Id, Path(description="The id of the subscription.")]


def _noted(request: HttpRequest, word: Word, target: int | str = "") -> Any:
    return noted(person_of(request), word, Target.SUBSCRIPTION, target)


@router.post("/subscriptions", **needs(Scope.MANAGE, "Subscribe a webhook", CreatedSubscription, 400, status=201))
def create_subscription(request: HttpRequest, body: SubscriptionIn) -> Any:
    with _noted(request, Word.CREATE) as entry:
        row = subscriptions.create(**body.model_dump())
        row.refresh_from_db()
        entry.target, entry.detail = row.pk, row.name
    return Status(201, row)


@router.get("/subscriptions", **needs(Scope.READ, "List subscriptions", page_of(SubscriptionOut), 400))
def list_subscriptions(request: HttpRequest, query: Query[PageIn]) -> Any:
    return page(Subscription.objects.all(), query, _seen_by(request))


@router.get("/subscriptions/{subscription_id}", **needs(Scope.READ, "Show one subscription", SubscriptionOut, 404))
def get_subscription(request: HttpRequest, subscription_id: SubscriptionId) -> Any:
    if row := Subscription.objects.filter(pk=subscription_id).first():
        return _seen_by(request).model_validate(row)
    raise NoSuchSubscription(subscription_id)


def _seen_by(request: HttpRequest) -> type[SubscriptionOut]:
    return SubscriptionOut if request.auth.may_manage else SubscriptionForReaders  # type: ignore[attr-defined]


@router.patch(
    "/subscriptions/{subscription_id}", **needs(Scope.MANAGE, "Change a webhook", SubscriptionOut, 400, 404)
)
def change_subscription(request: HttpRequest, subscription_id: SubscriptionId, body: SubscriptionChanges) -> Any:
    """A webhook that was waiting because its receiver was down is tried again at once."""
    changes = body.model_dump(exclude_unset=True)
    with _noted(request, Word.CHANGE, subscription_id) as entry:
        row = subscriptions.change(subscription_id, **changes)
        entry.detail = ", ".join(changes)
    return row


@router.delete(
    "/subscriptions/{subscription_id}",
    **needs(Scope.MANAGE, "Delete a webhook and its deliveries", None, 404, status=204),
)
def delete_subscription(request: HttpRequest, subscription_id: SubscriptionId) -> Any:
    with _noted(request, Word.DELETE, subscription_id):
        subscriptions.delete(subscriptions.webhook(subscription_id).pk)
    return Status(204, None)


@router.post(
    "/subscriptions/{subscription_id}/rotate-secret",
    **needs(Scope.MANAGE, "Give a webhook a new secret", CreatedSubscription, 400, 404),
)
def rotate_secret(request: HttpRequest, subscription_id: SubscriptionId, body: RotateIn) -> Any:
    """For a while each request carries one signature by the new secret and one by the old secret, so that no
    delivery is refused before the receiver has the new secret. If the answer was lost, repeat the rotation: the
    old secret stays, and the secret in between expires."""
    with _noted(request, Word.ROTATE, subscription_id) as entry:
        row = subscriptions.rotate(subscription_id, body.old_secret_seconds)
        entry.detail = subscriptions.in_words(row)
    return row


@router.post(
    "/subscriptions/{subscription_id}/test",
    **needs(Scope.MANAGE, "Send a test to a webhook, and wait up to five seconds for the answer", TrialOut, 404),
)
def test_subscription(request: HttpRequest, subscription_id: SubscriptionId) -> Any:
    answer = subscriptions.test(subscriptions.webhook(subscription_id))
    with _noted(request, Word.TEST, subscription_id) as entry:
        entry.outcome = Outcome.DONE if answer.is_good else Outcome.FAILED
    return {"delivered": answer.is_good, "status": answer.status, "error": answer.error}


class DeliveriesIn(PageIn):
    state: Literal["", "pending", "delivered", "dead"] = ""
    subscription: Id | None = None
    execution: Id | None = None


class DeliveryOut(Schema):
    id: int
    subscription_id: int
    execution_id: int
    vendor_type: str
    revision: int
    from_status: str = Field(serialization_alias="from")
    to_status: str = Field(serialization_alias="to")
    changed_at: datetime
    state: str = Field(description="`pending`, `delivered` or `dead`.")
    attempts: int
    next_at: datetime | None = Field(description="The time of the next attempt. Null: the delivery has ended.")
    last_error: str
    created_at: datetime
    ended_at: datetime | None


class ResendIn(Given):
    subscription: Id | None = Field(None, description="Default: every subscription.")
    state: Literal["dead"] = "dead"


class ResentOut(Schema):
    resent: int = Field(description="At most 100,000. If more are left, repeat the request.")


@router.get(
    "/deliveries",
    **needs(Scope.READ, "List deliveries, the newest first", page_of(DeliveryOut), 400),
    by_alias=True,
)
def list_deliveries(request: HttpRequest, query: Query[DeliveriesIn]) -> Any:
    chosen = {"state": query.state, "subscription_id": query.subscription, "execution_id": query.execution}
    rows = Delivery.objects.filter(**{name: value for name, value in chosen.items() if value})
    return page(claims.by_subscription(rows) if query.execution else rows, query, DeliveryOut, by="-pk")


@router.post("/deliveries/resend", **needs(Scope.MANAGE, "Send all dead letters again", ResentOut, 404))
def resend_deliveries(request: HttpRequest, body: ResendIn) -> Any:
    rows, chosen = Delivery.objects.all(), ""
    if body.subscription is not None:
        if not Subscription.objects.filter(pk=body.subscription).exists():
            raise NoSuchSubscription(body.subscription)
        rows, chosen = rows.filter(subscription_id=body.subscription), f"of subscription {body.subscription}"
    with noted(person_of(request), Word.RESEND, Target.DELIVERY, chosen) as entry:
        entry.count = claims.resend(rows)
    return {"resent": entry.count}


@router.post(
    "/deliveries/{delivery_id}/resend", **needs(Scope.MANAGE, "Send one dead letter again", ResentOut, 404, 409)
)
def resend_delivery(
    request: HttpRequest, delivery_id: Annotated[Id, Path(description="The id of the delivery.")]
) -> Any:
    with noted(person_of(request), Word.RESEND, Target.DELIVERY, delivery_id) as entry:
        entry.count = claims.resend(Delivery.objects.filter(pk=delivery_id))
        if not entry.count:
            if Delivery.objects.filter(pk=delivery_id).exists():
                raise Problem(409, "It is not dead", f"delivery {delivery_id} is not a dead letter")
            raise Problem(404, "Not found", f"there is no delivery {delivery_id}")
    return {"resent": 1}
