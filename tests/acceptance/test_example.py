"""The example as its first lines say to run it, with a real worker; and the traffic that `make up` makes of it."""

import signal
import subprocess
import sys

import pytest
from redis import Redis

from examples import traffic
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.local.services import services
from harbor_refresh.tasks.models import Job
from tests import servers
from tests.faults.cluster import ROOT, Cluster, Member
from tests.waiting import wait_for


def history() -> list[tuple[str, str]]:
    return list(StatusChange.objects.order_by("execution", "revision").values_list("from_status", "to_status"))


def test_a_mirror_of_twenty_artifacts_succeeds_and_shows_its_progress(cluster: Cluster, redis: Redis) -> None:
    worker = cluster.worker(include=["examples.mirror"])
    done = subprocess.run(
        [sys.executable, "-m", "examples.mirror", "library/alpine", "20"],
        cwd=ROOT,
        env=cluster.env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), worker.text()
    execution = Execution.objects.get()
    assert (execution.vendor_type, execution.vendor_id, execution.status) == ("REPLICATION", 1, "Success")
    first, *shares, last = done.stdout.splitlines()
    assert first == f"{execution} has 20 jobs"
    assert last == f"{execution} is Success"
    shown = [int(line.split("%")[0]) for line in shares]
    assert shown == sorted(shown)
    assert len(set(shown)) > 1
    assert shares[-1].startswith("100%  {'Success': 20}")
    assert [job.args for job in Job.objects.order_by("pk")] == [["library/alpine", f"1.{n}"] for n in range(20)]
    # the seed of the last one makes the registry busy, so that it is retried
    ends = Task.objects.order_by("pk").values_list("status", "status_revision", "run_count")
    assert list(ends) == [("Success", 0, 0)] * 19 + [("Success", 1, 1)]
    assert history() == [("Running", "Success")]
    wait_for(lambda: not Job.objects.exclude(state="ended").exists(), "each job to have ended")


def begin(cluster: Cluster, name: str) -> Member:
    """As `make up` does."""
    (service,) = (one for one in services(0, 0) if one.name == name)
    return cluster.start(name, service.argv)


def end(member: Member) -> None:
    member.signal(signal.SIGTERM)
    assert member.process.wait(300) == 0, member.text()


@pytest.mark.slow
def test_a_mirror_that_the_traffic_started_ends_after_the_traffic_has_stopped(
    cluster: Cluster, redis: Redis
) -> None:
    worker, mirrors = begin(cluster, "jobs"), begin(cluster, "mirrors")
    cluster.worker()
    wait_for(lambda: Task.objects.filter(status="Success").exists(), "a job to succeed", log=worker.log)
    end(mirrors)
    assert mirrors.text().splitlines() == ["Mirrors begin", "No more mirrors"]
    wait_for(lambda: not traffic.mirrors(end_time=None), "every mirror to end", log=worker.log)
    found = Execution.objects.values_list("vendor_type", "trigger", "status")
    assert set(found) <= {("REPLICATION", "SCHEDULE", status) for status in ("Success", "Error", "Stopped")}
    assert traffic.mirrors().count() == len(found) > 0


@pytest.mark.slow
def test_the_traffic_waits_for_a_database_that_is_down(cluster: Cluster, redis: Redis) -> None:
    servers.postgres.kill()
    try:
        mirrors = begin(cluster, "mirrors")
        wait_for(lambda: "Trying again." in mirrors.text(), "it to say so", log=mirrors.log)
    finally:
        servers.postgres.start()
    wait_for(lambda: "It works again" in mirrors.text(), "it to go on", log=mirrors.log)
    assert traffic.mirrors().exists()
    assert "Traceback" not in mirrors.text()
    end(mirrors)
