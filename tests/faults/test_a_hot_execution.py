"""Ten thousand tasks of one execution end at the same moment."""

import multiprocessing
import os
import re
from collections.abc import Callable

from django.db import connection

from executions.models import Execution, Task
from tests.faults.cluster import Cluster
from tests.faults.conftest import many

PROCESSES = 8


def _report(database: str, task_ids: list[int], results: "multiprocessing.Queue[str]") -> None:
    """In a process of its own: one report after the other, as a runner would."""
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "settings.test"
    django.setup()
    connection.settings_dict["NAME"] = database
    from executions.usecases import Report, report

    try:
        for start in range(0, len(task_ids), 10):
            report([Report(pk, "Success", 1) for pk in task_ids[start : start + 10]])
    except Exception as exc:
        results.put(repr(exc))
    else:
        results.put("fine")


def test_reports_from_eight_processes_meet_no_error_and_few_refreshes(
    database: str, cluster: Cluster, holds: Callable[..., None]
) -> None:
    worker = cluster.worker()
    cluster.beat()
    (hot,) = many(1, tasks=10_000)
    task_ids = list(Task.objects.filter(execution_id=hot).values_list("pk", flat=True))
    connection.close()
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[str] = context.Queue()
    reporters = [
        context.Process(target=_report, args=(database, task_ids[n::PROCESSES], results))
        for n in range(PROCESSES)
    ]
    for reporter in reporters:
        reporter.start()
    assert [results.get(timeout=60) for _ in reporters] == ["fine"] * PROCESSES
    for reporter in reporters:
        reporter.join(10)
    holds()
    execution = Execution.objects.get(pk=hot)
    assert (execution.status, execution.revision) == ("Success", 1)
    assert "ERROR" not in worker.text()
    refreshes = len(re.findall("Refresh outdate execution status done, 1 succeed", worker.text()))
    assert refreshes <= 200, f"{refreshes} refreshes for 1,000 batches of reports"
