"""The time left of an execution follows the ends of its tasks in the last hour."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries.progress import progress

pytestmark = pytest.mark.usefixtures("clock_stands")

HOUR = 3600.0
NIGHT = 10 * HOUR


@pytest.fixture
def clock_stands(database: str) -> Iterator[None]:
    """In a transaction, the moment is that of its begin."""
    with transaction.atomic():
        yield


def execution(ended: Iterable[float], *, running: int = 0, waiting: int = 0, began: float = HOUR / 2) -> int:
    """An execution that began so many seconds ago, and whose tasks ended so many seconds ago."""
    ago = list(ended)
    made = create(NewExecution("SCAN", tasks=[NewTask()] * (len(ago) + running + waiting)))
    Execution.objects.filter(pk=made.pk).update(start_time=TransactionNow() - timedelta(seconds=began))
    tasks = list(made.tasks.order_by("pk"))
    for task, seconds in zip(tasks, ago, strict=False):
        task.status, task.status_code, task.end_time = "Success", 3, TransactionNow() - timedelta(seconds=seconds)
    for task in tasks[len(ago) : len(ago) + running]:
        task.status, task.status_code = "Running", 2
    Task.objects.bulk_update(tasks, ["status", "status_code", "end_time"])
    return made.pk


def seconds_left(pk: int) -> float | None:
    found = progress(pk).eta
    return None if found is None else round(found.total_seconds(), 1)


def each(seconds: float, count: int, since: float = 0.0) -> list[float]:
    """The ends of so many jobs, one after the other. The last one ended `since`."""
    return [since + number * seconds for number in range(count)]


#: What has ended, and the rest; how many seconds are left.
CASES: dict[str, tuple[dict[str, Any], float | None]] = {
    "10 s each since the start": ({"ended": each(10, 5), "running": 1, "waiting": 99, "began": 50}, 1000.0),
    "the first has ended": ({"ended": [5], "running": 1, "waiting": 9, "began": 65}, 650.0),
    "no worker ran for half an hour, which counts": (
        {"ended": [*each(10, 20), *each(10, 20, since=2000)], "running": 1, "waiting": 99, "began": 2200},
        5500.0,
    ),
    "of a night only the last hour counts": (
        {"ended": [*each(100, 36), *each(10, 50, since=2 * HOUR)], "running": 1, "waiting": 9, "began": NIGHT},
        1000.0,
    ),
    "nothing has ended yet": ({"ended": [], "running": 4, "waiting": 96}, None),
    "nothing has ended for an hour": ({"ended": each(10, 20, since=HOUR), "running": 1, "began": 2 * HOUR}, None),
    "it has just begun, and one has ended": ({"ended": [0], "running": 1, "began": 0}, None),
    "nothing is left": ({"ended": each(10, 20)}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_time_left(name: str) -> None:
    told, left = CASES[name]
    assert seconds_left(execution(**told)) == left


def test_progress_counts_the_tasks() -> None:
    pk = execution(each(10, 3), running=1, waiting=2)
    found = progress(pk)
    assert (found.counts, found.total, found.done, found.share) == (
        {"Success": 3, "Running": 1, "Pending": 2},
        6,
        3,
        0.5,
    )
    empty = progress(create(NewExecution("SCAN")).pk)
    assert (empty.counts, empty.total, empty.done, empty.eta) == ({}, 0, 0, None)
