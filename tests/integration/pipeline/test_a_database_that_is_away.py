"""Without a database that takes writes nothing is claimed, and a claim is released without an attempt."""

from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Quarantine
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.refresher import refresh_claim
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.concurrency import statement_held_open
from tests.integration.pipeline.pipeline_state import marked, member, names
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made, status_of

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_with_the_database_down_a_claim_is_released_without_an_attempt_and_claiming_pauses(
    redis: Redis, told: list[Any], settings: Settings
) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    claim = execution_queue().claim("me", 10).claim
    port, told[:] = connection.settings_dict["PORT"], []
    connection.close()
    connection.settings_dict["PORT"] = "1"
    try:
        refresh_claim(claim)
    finally:
        connection.settings_dict["PORT"] = port
    assert names(told) == ["database_down"]
    state = whole_redis(redis)
    assert (state["queue:v2"], state["pause"]) == ({member(execution)}, "1")
    assert not {"processing", "attempts"} & set(state)
    assert len(execution_queue().claim("me", 10).claim) == 0


def test_a_table_that_a_migration_holds_counts_no_attempt(redis: Redis, told: list[Any]) -> None:
    """A claim of one execution is given back as often as it is tried."""
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    with statement_held_open("LOCK TABLE task IN ACCESS EXCLUSIVE MODE"):
        for _ in range(refresh_settings().max_attempts + 1):
            claim = execution_queue().claim("me", 10).claim
            assert claim.members == (member(execution),)
            told.clear()
            refresh_claim(claim)
            assert names(told) == ["database_down"]
            state = whole_redis(redis)
            assert (state["queue:v2"], state["pause"]) == ({member(execution)}, "1")
            assert not {"processing", "attempts"} & set(state)
            redis.delete(execution_queue().keys.pause)
    refresh_claim(execution_queue().claim("me", 10).claim)
    assert status_of(execution) == "Success"
    assert not Quarantine.objects.exists()


def test_a_server_that_takes_no_writes_is_down(database: str, redis: Redis, told: list[Any]) -> None:
    execution, tasks = made(1)
    report([Report(tasks[0], "Success")])
    told.clear()
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    connection.close()
    published: list[Any] = []
    assert dispatch(published.extend, 0) == 0
    assert connection.connection is None, "the next one may find a server that takes writes"
    assert (published, names(told), marked(redis)) == ([], ["database_down"], {member(execution)})
    assert redis.exists(execution_queue().keys.pause)
    assert redis.exists(execution_queue().keys.wake), "the next mark sends no tick, which could do nothing either"
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = off")
        cursor.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    connection.close()
    redis.delete(execution_queue().keys.pause)
    assert dispatch(published.extend, 0) == 1
