"""The watermark of reconcile never passes a drift that is not healed, nor a transaction that is open."""

import psycopg
import pytest

from executions import usecases
from executions.errors import QueueUnavailable
from executions.models import Task, Watermark
from executions.queue import execution_queue
from executions.usecases import Report, report
from tests import servers
from tests.integration.state import Redis, rows
from tests.integration.usecases.situations import drifted, made, marked, member, watermark

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_drift_stays_in_sight_until_it_is_healed_and_then_the_watermark_moves_on(
    redis: Redis,
) -> None:
    execution = drifted(minutes=60)
    changed = Task.objects.get().update_time
    for _ in range(3):
        redis.flushall()
        assert usecases.reconcile().marked == 1
        assert watermark() == changed
    usecases.refresh([execution.pk])
    assert usecases.reconcile().marked == 0
    assert watermark() > changed
    assert usecases.reconcile().looked_at == 0


def test_a_transaction_that_is_still_open_holds_the_watermark_back(database: str) -> None:
    _, tasks = made(1)
    with psycopg.connect(servers.postgres.url_for(database)) as slow:
        began = slow.execute("SELECT now()").fetchone()
        assert began is not None
        slow.execute(
            "UPDATE task SET status = 'Success', status_code = 3, update_time = now(), "
            "end_time = now() WHERE id = %s",
            tasks,
        )
        assert usecases.reconcile().drifted == 0
        assert watermark() == began[0]
        slow.commit()
    assert usecases.reconcile().marked == 1


def test_an_old_reader_holds_the_watermark_back_and_not_the_look(database: str, redis: Redis) -> None:
    usecases.reconcile()
    with psycopg.connect(servers.postgres.url_for(database)) as reader:
        reader.read_only = True
        began = reader.execute("SELECT now()").fetchone()
        assert began is not None
        for _ in range(3):
            execution, tasks = made(1)
            report([Report(tasks[0], "Success")])
            redis.flushall()
            outcome = usecases.reconcile()
            assert [one.execution_id for one in outcome.examples] == [execution.pk]
            assert (outcome.drifted, outcome.marked) == (1, 1)
            assert watermark() == began[0]
            usecases.refresh([execution.pk])
            redis.flushall()
    assert usecases.reconcile().drifted == 0
    assert watermark() > began[0]


def test_a_full_reconcile_looks_at_everything_and_leaves_the_watermark(redis: Redis) -> None:
    usecases.reconcile()
    before = watermark()
    execution = drifted(minutes=60 * 24 * 365)
    assert usecases.reconcile().looked_at == 0
    before = watermark()
    outcome = usecases.reconcile(full=True)
    assert [one.execution_id for one in outcome.examples] == [execution.pk]
    assert marked(redis) == {member(execution)}
    assert outcome.oldest is not None
    assert watermark() == outcome.oldest < before
    usecases.refresh([execution.pk])
    usecases.reconcile()
    before = watermark()
    usecases.reconcile(full=True)
    assert watermark() == before


def test_with_redis_away_reconcile_says_so_and_the_watermark_does_not_move(redis: Redis, redis_away: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("executions.strategies.claim.execution_queue", execution_queue)
        usecases.reconcile()
    before = rows(Watermark)
    _, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with pytest.raises(QueueUnavailable, match="Redis"):
        usecases.reconcile()
    assert rows(Watermark) == before
