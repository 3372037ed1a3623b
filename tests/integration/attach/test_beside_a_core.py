"""Our workers and beat beside a core of Harbor, which starts, reports, refreshes, stops and sweeps.

When the core has ended and the queue is drained, each status is what the words of its tasks say, and the schema of
Harbor is the same to the letter.
"""

import json
import random
import re
import sys
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from redis import Redis

from harbor_refresh.executions.management.output import Failed
from tests.faults.cluster import Cluster, Member
from tests.harbor.core import EACH, MARKS
from tests.harbor.dump import dump_of_public
from tests.harbor.rows import asked
from tests.harbor.samples import execution, wrong
from tests.integration.command_output import data
from tests.variants import variants
from tests.waiting import wait_for

PROCESSING = "cache:execution:refresh:processing"
#: A line of a worker or a beat that tells of a mistake of ours.
MISTAKE = re.compile(r"\b(ERROR|CRITICAL)\b|Traceback|Unrecoverable")


def start_core(cluster: Cluster, seed: int, seconds: str) -> Member:
    words = [cluster.env["DATABASE_URL"], cluster.env["REDIS_URL"], "--seed", str(seed), "--seconds", seconds]
    return cluster.start("core", [sys.executable, "-m", "tests.harbor.core", *words])


def what_dangles() -> list[int]:
    """Executions that began two weeks ago and that no mark names. Harbor's sweep ends them without an end, the
    second although a task of it waits."""
    ids = [
        execution("Running", None, "Success", "Error"),
        execution("Running", None, "Pending", "Success"),
        execution("Running", None, "Stopped", revision=None),
    ]
    asked("UPDATE execution SET start_time = now() - interval '14 days'")
    return ids


def what_only_we_can_refresh(redis: Redis) -> int:
    """Executions without a revision, which Harbor's 2.8 has left. A core takes their marks, fails, and marks them
    again. Returns how many."""
    ids = [execution("Running", None, "Success", revision=None) for _ in range(10)]
    redis.sadd(MARKS, *(f"{pk}:REPLICATION" for pk in ids))
    return len(ids)


def reconciled(*words: str) -> Any:
    """What a command with a full reconcile says. It is refused while that of beat runs, and then typed again."""
    answers: list[Any] = []

    def is_answered() -> bool:
        try:
            answers.append(data(*words))
        except Failed as refused:
            if "another reconcile is running" not in str(refused):
                raise
        return bool(answers)

    wait_for(is_answered, "a reconcile after that of beat")
    return answers[0]


def drained(redis: Redis) -> bool:
    with redis.pipeline(transaction=True) as one_look:
        return not any(one_look.scard(MARKS).scard(PROCESSING).execute())


@pytest.mark.parametrize("seconds", variants("3", "60"))
def test_each_status_is_what_the_tasks_say_after_traffic_on_both_sides(
    seconds: str, cluster: Cluster, database: str, redis: Redis, admin: Client
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")  # noqa: T201  # pytest shows it if the test fails
    before = dump_of_public(database)
    assert "CREATE TABLE public.task" in before
    dangling = what_dangles()
    of_us_alone = what_only_we_can_refresh(redis)
    cluster.worker(concurrency=2)
    cluster.beat()
    core = start_core(cluster, seed, seconds)
    wait_for(core.died, "the core to end", log=core.log)
    told = json.loads(core.text().splitlines()[-1])
    assert (core.process.returncode, told["errors"]) == (0, [])
    did = told["did"]
    assert all(did.get(one) for one in EACH), did

    def only_the_dangling_are_wrong() -> bool:
        return drained(redis) and set(wrong()) <= set(dangling)

    try:
        wait_for(only_the_dangling_are_wrong, "the marks and reconcile to put right what the core has left")
    except AssertionError as late:
        raise AssertionError(f"{late}: {wrong()}") from None
    ours = asked("SELECT count(*) FROM execution_status_change")[0][0]
    assert ours >= of_us_alone, did

    reconciled("harbor", "repair", "drift", "--full")
    wait_for(lambda: drained(redis) and wrong().keys() <= {dangling[1]}, "the marks of the repair")

    data("attach", "check")
    assert reconciled("harbor", "repair", "drift", "--full")["drifted"] == 0
    assert data("harbor", "status")
    assert data("harbor", "list")
    assert_pages_answer(admin)
    assert wrong().keys() <= {dangling[1]}
    assert dump_of_public(database) == before
    mistakes = [line for line in cluster.logs().splitlines() if MISTAKE.search(line)]
    assert mistakes == []


def assert_pages_answer(admin: Client) -> None:
    """The lists, and the pages of rows of each kind that the core has made."""
    executions = [
        pk for (pk,) in asked("SELECT min(id) FROM execution GROUP BY status, end_time IS NULL, revision IS NULL")
    ]
    tasks = [pk for (pk,) in asked("SELECT min(id) FROM task GROUP BY status, update_time IS NULL")]
    addresses = [
        reverse("admin:index"),
        reverse("admin:harbor_executions_execution_changelist"),
        reverse("admin:harbor_executions_task_changelist"),
        reverse("admin:harbor_executions_statuschange_changelist"),
        *(reverse("admin:harbor_executions_execution_change", args=[pk]) for pk in executions),
        *(reverse("admin:harbor_executions_task_change", args=[pk]) for pk in tasks),
    ]
    answers = {address: admin.get(address).status_code for address in addresses}
    assert answers == dict.fromkeys(addresses, 200)
