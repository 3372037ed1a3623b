"""Dead letters: deliveries that were given up. They can be sent again, one by one or all of a subscription."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now

from harbor_refresh.executions.models import Delivery
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.after_commit import tell_changes_written_after_commit

PAGE = 1_000
#: What one call sends again. The caller may call again.
MOST = 100_000


def resend(delivery_ids: Iterable[int]) -> int:
    """Make these dead deliveries pending again, as if they were new; return how many were dead. They may arrive
    after later changes of their executions."""
    with transaction.atomic():
        ids = list(delivery_ids)
        dead = Delivery.objects.filter(pk__in=ids, state=State.DEAD)
        locked = list(dead.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
        count = Delivery.objects.filter(pk__in=locked).update(
            state=State.PENDING, attempts=0, next_at=Now(), ended_at=None, created_at=Now()
        )
        tell_changes_written_after_commit()
    return count


def resend_all(subscription_id: int | None = None) -> int:
    """Send all dead letters of a subscription again, or of all; return how many, 100,000 at most. Each page
    is one transaction. The pages go by the id, so a delivery that dies again behind them is not sent twice."""
    dead = Delivery.objects.filter(state=State.DEAD).order_by("pk")
    if subscription_id is not None:
        dead = dead.filter(subscription_id=subscription_id)
    total, after = 0, 0
    while total < MOST and (ids := list(dead.filter(pk__gt=after).values_list("pk", flat=True)[:PAGE])):
        total += resend(ids)
        after = ids[-1]
    return total
