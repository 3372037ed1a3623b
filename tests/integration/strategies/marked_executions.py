"""Executions that wait to be refreshed, one that cannot be, and what is left when all is done."""

from collections.abc import Sequence

from django.db import connection

from benchmarks.designs import STRATEGIES
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Task
from tests.created import create_many
from tests.integration.redis_state import Redis

OLD = sorted(set(STRATEGIES) - {"claim"})

ODD = ["A", "P2P PREHEAT*?[x]", "ü-日本", "a/b\\c\"'", "x" * 64]

LOCK = "cache:execution:refresh:lock"


def marked(count: int = 10, vendor: str = "REPLICATION") -> list[int]:
    """Executions whose tasks have succeeded, and which are marked and not refreshed."""
    ids = [one.pk for one in create_many(NewExecution(vendor, tasks=[NewTask()]) for _ in range(count))]
    report(
        [Report(pk, "Success", 1) for pk in Task.objects.filter(execution_id__in=ids).values_list("pk", flat=True)]
    )
    return ids


def statuses(ids: Sequence[int]) -> set[str]:
    return set(Execution.objects.filter(pk__in=ids).values_list("status", flat=True))


#: What a queue of claims keeps for good, or for a moment.
KEPT = ("nodes", "wake", "cursor", "heat", "ticked", "legacy_cursor", "legacy_rest")


def rested(client: Redis) -> None:
    """As if the moment had passed for which the queue lets an execution rest that was just refreshed."""
    client.delete("cache:execution:refresh:heat")


def left_in_redis(client: Redis) -> set[str]:
    """Every key there is, but for what a queue of claims keeps for good, and for the ticks it has asked for."""
    names = {key.decode() for key in client.keys("*")}
    queue = {f"cache:execution:refresh:{name}" for name in KEPT}
    return {name for name in names - queue if not name.startswith(("_kombu.binding", "harbor_refresh.ticks"))}


def refuse(pk: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused by a test'; END $$"""
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON execution FOR EACH ROW WHEN (OLD.id = {pk}) "
            "EXECUTE FUNCTION refuse()"
        )
