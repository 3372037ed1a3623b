"""Ten thousand tasks of one execution end at the same moment."""

import re
import subprocess
import sys
from collections.abc import Callable

from executions.models import Execution, Task
from tests.faults.cluster import ROOT, Cluster
from tests.faults.conftest import many

PROCESSES = 8


def test_reports_from_eight_processes_meet_no_error_and_few_refreshes(
    cluster: Cluster, holds: Callable[..., None]
) -> None:
    worker = cluster.worker()
    cluster.beat()
    (hot,) = many(1, tasks=10_000)
    tasks = Task.objects.filter(execution_id=hot).order_by("pk").values_list("pk", flat=True)
    task_ids = [str(pk) for pk in tasks]
    runners = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.faults.runner", *task_ids[n::PROCESSES]],
            cwd=ROOT,
            env=cluster.env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(PROCESSES)
    ]
    told = [runner.communicate(timeout=90)[1] for runner in runners]
    assert [runner.returncode for runner in runners] == [0] * PROCESSES, told
    holds()
    execution = Execution.objects.get(pk=hot)
    assert (execution.status, execution.revision) == ("Success", 1)
    assert " ERROR " not in worker.text()
    refreshes = len(re.findall("Refresh outdate execution status done, 1 succeed", worker.text()))
    assert refreshes <= 200, f"{refreshes} refreshes for 1,000 batches of reports"
