"""Harbor's own marks are moved to the queue and back, and the program that moves them is killed in the middle."""

import json
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.tasks.conf.pacing import LOOK
from harbor_refresh.tasks.pipeline.legacy_marks import legacy_marks
from harbor_refresh.tasks.queue import execution_queue
from tests.faults.cluster import Cluster
from tests.faults.conftest import many, statuses
from tests.integration.command_output import data
from tests.integration.old_release import Witness, Writers, key_of
from tests.integration.redis_state import PREFIX
from tests.variants import variants
from tests.waiting import wait_for

QUEUE, PROCESSING = f"{PREFIX}queue:v2", f"{PREFIX}processing"


#: Take all marks, as the ticks do, but without a rest between two looks.
IMPORT = "from tests.faults.test_marks_of_harbor import take_all; take_all()"


def take_all() -> int:
    return sum(count for _, count in legacy_marks().pages())


def killed(cluster: Cluster, verb: str, point: str, *command: str, pages: int) -> None:
    """Run the command, which kills itself after so many pages."""
    plan = {"point": point, "act": "kill_process", "skip": pages - 1, "once": str(cluster.directory / verb)}
    (cluster.directory / verb).unlink(missing_ok=True)
    program = [sys.executable, "-m", "tests.faults.sabotaged_command", *command]
    run = cluster.start(verb, program, SABOTAGE=json.dumps(plan))
    wait_for(run.died, f"{verb} to kill itself", log=run.log)
    assert run.process.returncode == -signal.SIGKILL, run.text()


def keys(redis: Redis) -> set[str]:
    return {key.decode() for key in redis.scan_iter("*status_outdate", count=5_000)}


@pytest.mark.parametrize("count", variants("3000", "100000"))
def test_no_mark_is_lost_on_the_way_here_and_back_however_often_the_command_is_killed(
    count: str, cluster: Cluster, redis: Redis
) -> None:
    executions = int(count)
    middle = executions // (2 * LOOK)
    everything = {key_of(number) for number in range(1, executions + 1)}
    for number in range(0, executions, 1_000):
        redis.mset({key_of(one): "" for one in range(number + 1, number + 1_001)})
    writers = Writers(executions, seed=random.randrange(10_000))

    # here, while programs of the old release go on writing
    witness = Witness(executions, [], may_be_in_two=True)
    with writers.at_work(), witness.at_work():
        killed(cluster, "import", "imported", "shell", "-c", IMPORT, pages=middle)
        assert 0 < redis.scard(QUEUE) < executions
        taken = take_all()
        written = writers.writes
        wait_for(lambda: writers.writes > written + 100, "an old release to write on")
    assert taken > 0
    assert (witness.wrong, witness.looks > 10) == ([], True)
    take_all()
    assert (redis.scard(QUEUE), keys(redis)) == (executions, set())

    # a part of it is claimed by a process that is no more, and everything goes back
    claim = execution_queue().claim("node", executions // 10).claim
    assert len(claim) == redis.scard(PROCESSING) > 0
    data("harbor", "pause")
    witness = Witness(executions, [claim.suffix])
    with witness.at_work():
        killed(cluster, "export", "exported", "harbor", "marks", "export", pages=middle + 1)
        assert 0 < redis.scard(QUEUE) < executions
        rest = data("harbor", "marks", "export")
    assert rest == {"moved": rest["moved"], "left": 0}
    assert (witness.wrong, witness.looks > 10) == ([], True)
    assert keys(redis) == everything
    assert not redis.exists(QUEUE, PROCESSING)

    # and here once more
    witness = Witness(executions, [])
    with witness.at_work():
        killed(cluster, "import", "imported", "shell", "-c", IMPORT, pages=middle)
        take_all()
    assert (witness.wrong, witness.looks > 10) == ([], True)
    assert (redis.scard(QUEUE), keys(redis)) == (executions, set())


@pytest.mark.slow
def test_workers_take_the_marks_of_an_old_release_and_a_killed_one_loses_none(
    cluster: Cluster, redis: Redis, holds: Callable[..., None], tmp_path: Path
) -> None:
    """The tasks change as an old release changes them: without a mark of ours. Reconcile does not help."""
    ids = many(3_000)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE task SET status = 'Success', status_code = 3, end_time = now(), update_time = now()"
        )
    form = key_of(1).replace(":1:", ":%d:").replace(":A:", ":REPLICATION:")
    redis.mset({form % pk: "" for pk in ids[:2_000]})
    plan = {"point": "imported", "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = cluster.worker("victim", sabotage=plan)
    beat = cluster.beat({"Reconcile": 3600})
    wait_for(victim.died, "the victim to die with marks just taken", log=victim.log)
    assert not beat.died()
    redis.mset({form % pk: "" for pk in ids[1_000:]})
    cluster.worker("heir")
    holds()
    assert statuses() == {"Success": 3_000}
    cluster.says("of Harbor's own marks onto the queue")
    assert keys(redis) == set()
