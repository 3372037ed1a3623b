"""A stop, a retry or a deletion has the time of a worker in each process, and no statement after it has."""

from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.tasks.jobs.again import retry_failed
from tests.integration.jobs.sample_jobs import ends, recorded
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "redis", "outbox")


def job(status: str = "") -> int:
    """The execution of a job that has ended so, or waits."""
    execution = recorded("j")
    if status:
        ends(execution, status)
    return execution.pk


def subscription() -> int:
    return subscriptions.create("x", "https://receiver.example/").pk


#: The table whose rows it changes, and the act, after what it needs.
ACTS: dict[str, tuple[str, Callable[[], Callable[[], object]]]] = {
    "stop": ("task", lambda: partial(stop, job())),
    "retry": ("task", lambda: partial(retry_failed, job("Error"))),
    "delete": ("task", lambda: partial(delete, [job()])),
    "unsubscribe": ("execution_subscription", lambda: partial(subscriptions.delete, subscription())),
}


def noted(table: str) -> "transaction.Atomic":
    """Note the limit of each statement that changes a row of this table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE seen (time_limit text);"
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO seen VALUES (current_setting('statement_timeout')); RETURN coalesce(new, old); END $$;"
            f"CREATE TRIGGER note BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION note();"
            "SET statement_timeout = '30s'"
        )
    return transaction.atomic()


def ask(statement: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("limit", ["10min", ""])
def test_what_writes_all_tasks_has_more_time_in_the_service_alone(
    act: str, limit: str, settings: Settings
) -> None:
    settings.LONG_STATEMENT_TIMEOUT = limit
    table, prepare = ACTS[act]
    do = prepare()
    try:
        with noted(table):
            do()
        assert set(ask("SELECT time_limit FROM seen")) == {limit or "30s"}
        assert ask("SHOW statement_timeout") == ["30s"]
    finally:
        connection.close()
