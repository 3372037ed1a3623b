"""What a person sees in Flower: the subtask names the execution it refreshes."""

import json
import sys
import urllib.request

from executions.creation import NewExecution, NewTask, create
from executions.reports import Report, report
from harbor_refresh.local.ports import choose_port
from tests.faults.cluster import Cluster
from tests.waiting import wait_for


def test_the_subtask_of_a_backlog_of_one_names_its_execution(cluster: Cluster) -> None:
    port = choose_port()
    flower = cluster.start(
        "flower",
        [
            *[sys.executable, "-m", "celery", "-A", "harbor_refresh", "flower"],
            *["--address=127.0.0.1", f"--port={port}"],
        ],
        FLOWER_UNAUTHENTICATED_API="1",
        FLOWER_READ_ONLY="True",
    )
    cluster.worker()
    wait_for(lambda: "Connected to redis" in flower.text(), "Flower to listen", log=flower.log)
    execution = create(NewExecution("REPLICATION", tasks=[NewTask()]))
    report([Report(execution.tasks.get().pk, "Success", 1)])
    seen: dict[str, str] = {}

    def flower_knows_it() -> bool:
        address = f"http://127.0.0.1:{port}/api/tasks?taskname=tasks.refresh_executions"
        with urllib.request.urlopen(address, timeout=5) as answer:
            tasks = json.load(answer)
        seen.update({task["args"]: task["state"] for task in tasks.values()})
        return bool(seen)

    wait_for(flower_knows_it, "the subtask to be in Flower", log=flower.log)
    assert list(seen) == [f"(execution {execution.pk} REPLICATION)"]
