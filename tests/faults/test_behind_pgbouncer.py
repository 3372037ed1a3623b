"""Jobs behind a PgBouncer in transaction mode. The workers, beat and the process that starts and stops the jobs
reach the database through it alone, and each of their transactions gets another session."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import chain

from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import ends, statuses
from tests.faults.test_jobs_that_come_twice import rows
from tests.integration.service.pooler import POOLED, PgBouncer, folder_for, used_here
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

Start = Callable[..., Member]


@pytest.fixture
def pooler(database: str) -> Iterator[PgBouncer]:
    bouncer = PgBouncer(folder_for(database))
    bouncer.start()
    with used_here(bouncer):
        yield bouncer
    bouncer.stop()


@pytest.fixture(autouse=True)
def all_is_well(pooler: PgBouncer, database: str, cluster: Cluster, holds: Callable[..., None]) -> Iterator[None]:
    """With a beat, as in production. After each test K1 to K5 hold, and the database has refused nothing."""
    cluster.env |= {"DATABASE_URL": pooler.url(database), **POOLED}
    cluster.beat()
    yield
    holds()
    assert "psycopg" not in cluster.logs()


def test_jobs_succeed_fail_are_tried_again_and_are_stopped(worker: Start, log: Path) -> None:
    member = worker()
    copies = [team.copy.s(str(n)) for n in range(8)]
    sound = start("SCAN", jobs=[*copies, chain(team.copy.s("a"), team.joined.s("b"))])
    flaky, broken = start("SCAN", jobs=[team.flaky.s("c", 2)]), start("SCAN", jobs=[team.fail.s("d")])
    for execution, status in ((sound, "Success"), (flaky, "Success"), (broken, "Error")):
        ends(execution, status, member)
    endless = start("SCAN", jobs=[team.endless.s(str(n)) for n in range(5)])
    wait_for(lambda: "endless" in log.read_text(), "one to run", log=member.log)
    endless.stop()
    ends(endless, "Stopped", member)
    succeeded = ("Success", 0, 0, "")
    assert rows(sound, flaky, broken) == {
        **dict.fromkeys([*map(str, range(8)), "a", "b"], succeeded),
        "c": ("Success", 2, 2, ""),
        "d": ("Error", 0, 0, "ValueError: d is broken"),
    }
    assert endless.progress().counts == {"Stopped": 5}
    ran = Counter(line for line in log.read_text().splitlines() if not line.startswith("endless"))
    assert ran == {**{f"copy {n}": 1 for n in [*range(8), "a"]}, "joined a b": 1, "flaky c": 3, "fail d": 1}


def test_a_worker_that_is_killed_in_a_transaction_leaves_no_lock_in_the_pool(
    worker: Start, log: Path, tmp_path: Path
) -> None:
    """PgBouncer keeps its sessions, so the death of a process does not end the transaction by itself."""
    act = {"point": "deciding", "act": "kill_group", "once": str(tmp_path / "acted")}
    victim = worker("victim", concurrency=1, sabotage=act)
    execution = start("SCAN", jobs=[team.copy.s(str(n)) for n in range(4)])
    wait_for(victim.died, "the victim to die", log=victim.log)
    ends(execution, "Success", worker("heir"))
    assert execution.progress().counts == {"Success": 4}
    assert set(log.read_text().splitlines()) == {f"copy {n}" for n in range(4)}
    assert statuses() == {"Success": 1}
