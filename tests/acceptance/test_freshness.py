"""A report on an idle system is visible in its execution at once, not at the next tick of the schedule."""

import time
from statistics import median

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution
from tests.faults.cluster import Cluster
from tests.waiting import slowness, wait_for


def seconds_until_true(execution: Execution) -> float:
    task = execution.tasks.get()
    start = time.monotonic()
    report([Report(task.pk, "Success", 1)])
    wait_for(lambda: Execution.objects.filter(pk=execution.pk, status="Success").exists(), "the status to be true")
    return time.monotonic() - start


def test_a_report_is_visible_within_a_second_though_beat_ticks_every_thirty(cluster: Cluster) -> None:
    """Without a beat nothing but its own report brings an execution up to date, so a single one that is not
    visible fails the test. A second is what it usually takes: the machine may stand still for a moment."""
    cluster.worker()

    def ten() -> list[float]:
        return [seconds_until_true(create(NewExecution("REPLICATION", tasks=[NewTask()]))) for _ in range(10)]

    ten()
    beat = cluster.beat()
    wait_for(lambda: "Sending due task" in beat.text(), "beat's first tick", log=beat.log)
    before, times = slowness(), ten()
    assert median(times) < max(before, slowness()), times
