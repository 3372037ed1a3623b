"""The time left of an execution follows the latest ends of its tasks, and no time in which nothing was done."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.queries.progress import progress

pytestmark = pytest.mark.usefixtures("database")

#: The clock of these tests stands at this moment.
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = 3600.0
NIGHT = 10 * HOUR


def execution(ended: Iterable[float], *, running: int = 0, waiting: int = 0, began: float = HOUR / 2) -> int:
    """An execution that began so many seconds ago, and whose tasks ended so many seconds ago."""
    ago = list(ended)
    made = create(NewExecution("SCAN", tasks=[NewTask()] * (len(ago) + running + waiting)))
    Execution.objects.filter(pk=made.pk).update(start_time=NOW - timedelta(seconds=began))
    tasks = list(made.tasks.order_by("pk"))
    for task, seconds in zip(tasks, ago, strict=False):
        task.status, task.status_code, task.end_time = "Success", 3, NOW - timedelta(seconds=seconds)
    for task in tasks[len(ago) : len(ago) + running]:
        task.status, task.status_code = "Running", 2
    Task.objects.bulk_update(tasks, ["status", "status_code", "end_time"])
    return made.pk


def seconds_left(pk: int) -> float | None:
    found = progress(pk, now=NOW).eta
    return None if found is None else round(found.total_seconds(), 1)


def waves(count: int, each: float, parallel: int, since: float = 0.0) -> list[float]:
    """The ends of so many jobs that take so long each, so many of them together. The last wave ended `since`."""
    return [since + (number // parallel) * each + (number % parallel) * 0.01 for number in range(count)]


#: What has ended, and the rest; how many seconds are left.
CASES: dict[str, tuple[dict[str, Any], float | None]] = {
    "one after the other, 10 s each": ({"ended": waves(5, 10, 1), "running": 1, "waiting": 99}, 1000.0),
    "of the first four that began together three have ended, after 60 s": (
        {"ended": [1, 1, 1], "running": 4, "waiting": 93, "began": 61},
        97 * 60 / 4,
    ),
    "the first of one has ended": ({"ended": [5], "running": 1, "waiting": 9, "began": 65}, 600.0),
    "four together, 60 s each": (
        {"ended": waves(40, 60, 4), "running": 4, "waiting": 96, "began": 620},
        100 * 60 / 4,
    ),
    "no worker ran for half an hour in between": (
        {
            "ended": [*waves(20, 10, 1), *waves(20, 10, 1, since=1800 + 200)],
            "running": 1,
            "waiting": 99,
            "began": 2300,
        },
        1000.0,
    ),
    "no worker runs since half an hour": (
        {"ended": waves(20, 10, 1, since=1800), "running": 1, "waiting": 99, "began": 2100},
        1000.0,
    ),
    "no worker ran for a night; three have ended since": (
        {
            "ended": [*waves(3, 10, 1), *waves(50, 99, 1, since=NIGHT)],
            "running": 1,
            "waiting": 9,
            "began": 2 * NIGHT,
        },
        100.0,
    ),
    "no worker ran for a night; of four together two have ended since": (
        {"ended": [0, 30, *waves(50, 99, 1, since=NIGHT)], "running": 4, "waiting": 6, "began": 2 * NIGHT},
        300.0,
    ),
    "no worker ran for a night; one has ended since, which says nothing": (
        {"ended": [0, *waves(50, 99, 1, since=NIGHT)], "running": 4, "waiting": 6, "began": 2 * NIGHT},
        None,
    ),
    "reports of 63 come together, every 5 s": (
        {"ended": [5.0 * (number // 63) for number in range(1_008)], "running": 2, "waiting": 1_006, "began": 100},
        1_008 * 5 / 63,
    ),
    "the first fifty reports came together": (
        {"ended": [0.0] * 50, "running": 2, "waiting": 48, "began": 10},
        50 * 10 / 50,
    ),
    "no worker ran for a night before the first ten ended, of which an hour counts": (
        {"ended": [0.0] * 10, "running": 10, "waiting": 10, "began": NIGHT},
        20 * HOUR / 10,
    ),
    "nothing has ended yet": ({"ended": [], "running": 4, "waiting": 96}, None),
    "nothing has ended for more than an hour": (
        {"ended": waves(20, 10, 1, since=HOUR), "running": 1, "began": 2 * HOUR},
        None,
    ),
    "nothing is left": ({"ended": waves(20, 10, 1)}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_time_left(name: str) -> None:
    told, left = CASES[name]
    assert seconds_left(execution(**told)) == left


def test_progress_counts_the_tasks() -> None:
    pk = execution(waves(3, 10, 1), running=1, waiting=2)
    found = progress(pk, now=NOW)
    assert (found.counts, found.total, found.done, found.share) == (
        {"Success": 3, "Running": 1, "Pending": 2},
        6,
        3,
        0.5,
    )
    empty = progress(create(NewExecution("SCAN")).pk)
    assert (empty.counts, empty.total, empty.done, empty.eta) == ({}, 0, 0, None)
