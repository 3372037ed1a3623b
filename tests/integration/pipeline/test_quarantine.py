"""Quarantine: executions that fail too often are quarantined, and released executions are refreshed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.models import Quarantine, Release
from harbor_refresh.tasks.conf import pacing, refresh_settings
from harbor_refresh.tasks.pipeline.reconciliation import reconcile
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.database_state import rows
from tests.integration.pipeline.pipeline_state import marked, member
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import drifted, fails_with, made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_an_execution_that_fails_too_often_is_quarantined_with_its_reason_and_blocks_no_other(
    redis: Redis, told: list[Any]
) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with("23514", bad)
    limit = refresh_settings().max_attempts
    for attempt in range(1, limit + 1):
        assert not Quarantine.objects.exists()
        claim = execution_queue().claim("me", 10).claim
        outcome = refresh_claim(claim)
        assert set(outcome.failed) == {bad.pk}
        assert outcome.succeeded == (1 if attempt == 1 else 0)
    assert status_of(good) == "Success"
    row = Quarantine.objects.get()
    assert (row.execution_id, row.attempts) == (bad.pk, limit)
    assert row.reason == "no more"
    assert ("quarantined", {"execution_ids": [bad.pk], "reasons": {bad.pk: row.reason}}) in told
    assert not {"queue:v2", "processing", "attempts"} & set(whole_redis(redis))


def test_executions_are_released_and_marked_when_their_quarantine_time_is_over(
    redis: Redis, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "QUARANTINE_SECONDS", 60)
    old, fresh = drifted(), drifted()
    now = datetime.now(UTC)
    Quarantine.objects.create(execution=old, reason="x", attempts=1, at=now - timedelta(seconds=90))
    Quarantine.objects.create(execution=fresh, reason="x", attempts=1, at=now - timedelta(seconds=30))
    assert reconcile().released_from_quarantine == 1
    assert list(Quarantine.objects.values_list("pk", flat=True)) == [fresh.pk]
    assert marked(redis) == {member(old)}
    assert ("released_from_quarantine", {"execution_ids": [old.pk]}) in told


def test_a_stop_in_quarantine_whose_refresh_fails_again_is_marked_and_found_by_reconcile(redis: Redis) -> None:
    execution, _ = made(1)
    reconcile()
    Quarantine.objects.create(execution=execution, reason="x", attempts=1)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution ADD CONSTRAINT never CHECK (status <> 'Stopped')")
    assert stop(execution.pk) == 1
    assert (status_of(execution), rows(Quarantine), len(rows(Release))) == ("Running", {}, 1)
    assert marked(redis) == {member(execution)}
    redis.flushall()
    assert reconcile().marked == 1
