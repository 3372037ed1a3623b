"""Deliveries over HTTP: what was told, what waits, what was given up and can be sent again."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema
from pydantic import Field

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.api.answers import PageIn, needs, page
from harbor_refresh.executions.api.problems import Problem
from harbor_refresh.executions.api.schemas import Given, Id, page_of
from harbor_refresh.executions.errors import NoSuchSubscription
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.news.audit import Target, Word, noted, person_of
from harbor_refresh.executions.news.deliveries import claims

router = Router(tags=["Subscriptions"])


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
