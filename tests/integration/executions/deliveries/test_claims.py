"""A claim reads about as many rows as it takes, however many deliveries wait."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.deliveries import claims
from harbor_refresh.executions.news.deliveries.claims import Result
from harbor_refresh.executions.news.deliveries.deliverer import write_deliveries
from harbor_refresh.executions.sql import text
from tests.integration.executions.deliveries.changed_executions import ended

WAITING = 20_000
ROOM = 5


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["without_statistics", "with_statistics"])
def test_a_claim_reads_few_rows_of_many(subscribed: Callable[..., Subscription], is_analyzed: bool) -> None:
    """A table that was just filled has no statistics, and the planner never knows how few rows a claim takes."""
    for name in ("one", "two"):
        subscribed("http://127.0.0.1:9/", name=name)
    ended(1)
    write_deliveries()
    names = {field.column: field.column for field in Delivery._meta.concrete_fields if not field.primary_key}
    values = {**names, "execution_id": "execution_id + more"}
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO execution_delivery ({', '.join(names)}) "
            f"SELECT {', '.join(values.values())} "
            f"FROM execution_delivery, generate_series(1, {WAITING // 2}) AS more"
        )
        if is_analyzed:
            cursor.execute("ANALYZE execution_delivery")
        cursor.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {text('harbor_refresh.executions', 'deliveries/claim_deliveries')}",
            {"only": None, "sending": [], "room": ROOM, "opens": 5, "lease": 60.0, "longest": 10},
        )
        (answer,) = cursor.fetchone()
    (plan,) = json.loads(answer) if isinstance(answer, str) else answer
    assert Delivery.objects.filter(attempts=1).count() == 2 * ROOM
    assert rows_read(plan["Plan"]) < 20 * ROOM, json.dumps(plan, indent=1)


def test_a_webhook_that_fails_for_hours_pauses_for_ten_minutes_at_most(
    subscribed: Callable[..., Subscription], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims.random, "uniform", lambda low, high: high)
    row = subscribed("http://127.0.0.1:9/")
    Subscription.objects.update(failures=5, failing_since=Now() - timedelta(hours=5))
    ended(1)
    write_deliveries()
    claims.record([Result(one, State.PENDING, "down", answered=False) for one in claims.claim(1, 60.0)])
    row.refresh_from_db()
    assert row.retry_at is not None
    assert 590 < (row.retry_at - timezone.now()).total_seconds() <= 600


def rows_read(node: dict[str, Any]) -> float:
    """Return how many rows of the table of deliveries a plan has read."""
    own = (
        node.get("Actual Rows", 0)
        + node.get("Rows Removed by Filter", 0)
        + node.get("Rows Removed by Join Filter", 0)
    )
    mine = own * node.get("Actual Loops", 1) if node.get("Relation Name") == "execution_delivery" else 0
    return float(mine) + sum(rows_read(one) for one in node.get("Plans", []))
