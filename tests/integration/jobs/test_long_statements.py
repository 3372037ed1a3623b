"""A stop, a retry or a deletion has the time of a worker in each process, and no statement after it has."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from harbor_refresh.executions.deliveries import subscriptions
from harbor_refresh.executions.deliveries.subscriptions import Wish
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.lifecycle.stops import stop
from harbor_refresh.tasks.jobs.lifecycle.retries import retry_failed
from tests.integration.actions.sample_bulk import reported, with_jobs

pytestmark = pytest.mark.usefixtures("database", "redis")


def stopped() -> None:
    (execution,) = with_jobs(1)
    with noted("task"):
        stop(execution.pk)


def retried() -> None:
    (execution,) = with_jobs(1)
    reported([execution], "Error")
    with noted("task"):
        retry_failed(execution.pk)


def deleted() -> None:
    (execution,) = with_jobs(1)
    with noted("task"):
        delete([execution.pk])


def unsubscribed() -> None:
    row = subscriptions.create(Wish("x", "https://receiver.example/"))
    with noted("execution_subscription"):
        subscriptions.delete(row.pk)


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


@pytest.mark.parametrize("act", [stopped, retried, deleted, unsubscribed])
@pytest.mark.parametrize("limit", ["10min", ""])
def test_what_writes_all_tasks_has_more_time_in_the_service_alone(
    act: Callable[[], None], limit: str, settings: Settings
) -> None:
    settings.LONG_STATEMENT_TIMEOUT = limit
    try:
        act()
        assert set(ask("SELECT time_limit FROM seen")) == {limit or "30s"}
        assert ask("SHOW statement_timeout") == ["30s"]
    finally:
        connection.close()
