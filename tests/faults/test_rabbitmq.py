"""RabbitMQ is the broker. It is killed, emptied or stands still while work goes on; so are its workers."""

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.tasks.broker.celery_queues import JOBS, QUEUES, TICKS, WORK
from harbor_refresh.tasks.broker.channels import DOWN, waiting
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.queue import execution_queue
from tests import servers
from tests.elsewhere import uses
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.rabbitmq import RabbitMQ
from tests.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    """One for all tests of this file, because it takes seconds to start."""
    with RabbitMQ(tmp_path_factory.mktemp("rabbitmq")) as server:
        yield server


@pytest.fixture
def broker(server: RabbitMQ) -> RabbitMQ:
    server.start()
    with server.connect() as connection:
        channel = connection.channel()
        for queue in QUEUES:
            channel.queue_delete(queue)
    return server


@pytest.fixture
def in_broker(broker: RabbitMQ) -> Callable[[], int]:
    """RabbitMQ tells only those that no worker has fetched; the others return when the workers end."""
    return lambda: max(broker.length(WORK), 0) + max(broker.length(JOBS), 0)


class Stage:
    """A cluster whose broker is this RabbitMQ, and what its jobs have written."""

    def __init__(self, cluster: Cluster, broker: RabbitMQ, env: dict[str, str], log: Path) -> None:
        self.cluster = cluster
        self.broker = broker
        self._env = env
        self._log = log

    def beat(self) -> Member:
        return self.cluster.beat(**self._env)

    def worker(
        self, name: str = "worker", *, concurrency: int = 2, queues: Sequence[str] = (), **env: str
    ) -> Member:
        env = {**self._env, "JOBS_LOG": str(self._log), **env}
        return self.cluster.worker(
            name, concurrency=concurrency, queues=queues, include=["tests.faults.jobs"], **env
        )

    def lines(self) -> list[str]:
        """A line for each run of a job."""
        return sorted(self._log.read_text().splitlines())


@pytest.fixture
def stage(cluster: Cluster, redis: Redis, broker: RabbitMQ, log: Path) -> Iterator[Stage]:
    with uses(servers.redis.url, broker.url) as env:
        yield Stage(cluster, broker, env, log)


@pytest.fixture
def ends(stage: Stage, holds: Callable[..., None], in_broker: Callable[[], int]) -> Callable[..., None]:
    """Each execution succeeds, K1 to K5 hold, the programs of `alive` have not ended, and no message returns when
    they are killed. K1 to K5 hold as well while a job whose message was lost waits for another one."""

    def check(*alive: Member) -> None:
        wait_for(lambda: set(statuses()) == {"Success"}, "each execution to succeed")
        holds()
        assert [member.log.name for member in alive if member.died()] == []
        stage.cluster.end()
        wait_for(lambda: in_broker() == 0, "the broker to hold nothing")

    return check


def claims() -> dict[str, int]:
    """The members in flight, with the moment of their claim."""
    return {token.member: token.stamp for token in execution_queue().tokens()}


def runs() -> list[tuple[str, int]]:
    """What has become of each job: the status of its task, and how often it ran again."""
    return sorted(
        (job.task.status, job.task.run_count) for job in Job.objects.select_related("task").order_by("pk")
    )


def test_a_rabbitmq_that_is_killed_again_and_again_loses_nothing(stage: Stage, ends: Callable[..., None]) -> None:
    """The stale limit is an hour, so it helps nothing. A job whose acknowledgement is lost is delivered again, and
    its second message finds that it has ended or goes on elsewhere; so each runs once."""
    members = [stage.worker("one", HARBOR_REFRESH_TEST_CHUNK="20"), stage.worker("two"), stage.beat()]
    names = [[f"{number}-{job}" for job in range(40)] for number in range(3)]
    late = [f"late-{number}" for number in range(3)]
    ids = many(1_500)
    for number, jobs in enumerate(names):
        begun = len(stage.lines())
        start("SCAN", jobs=[team.copy.s(name, 0.3) for name in jobs])
        succeed(ids[number * 500 : number * 500 + 250])
        wait_for(lambda begun=begun: len(stage.lines()) > begun + 4, "jobs to be in full swing")  # type: ignore[misc]
        stage.broker.kill()
        start("SCAN", jobs=[team.copy.s(late[number])])
        succeed(ids[number * 500 + 250 : number * 500 + 500])
        stage.broker.start()
    ends(*members)
    assert statuses() == {"Success": 1_506}
    assert stage.lines() == sorted(f"copy {name}" for jobs in [*names, late] for name in jobs)
    assert runs() == [("Success", 0)] * 123


def test_claims_and_jobs_whose_messages_are_lost_go_on(stage: Stage, ends: Callable[..., None]) -> None:
    """No worker takes the work before it is lost, and no other message waits after that."""
    members = [stage.worker("ticks", concurrency=1, queues=[TICKS]), stage.beat()]
    length = stage.broker.length
    start("SCAN", jobs=[team.copy.s(str(number)) for number in range(5)])
    succeed(many(10))
    wait_for(lambda: length(WORK) > 0 and length(JOBS) > 0 and len(claims()) == 10, "the messages")
    lost = claims()
    stage.broker.empty()
    wait_for(lambda: all(claims().get(one, 0) > stamp for one, stamp in lost.items()), "each to be claimed again")
    members.append(stage.worker("all"))
    ends(*members)
    assert statuses() == {"Success": 11}
    assert stage.lines() == [f"copy {number}" for number in range(5)]


def test_a_rabbitmq_that_stands_still_ends_no_worker_and_loses_nothing(
    stage: Stage, ends: Callable[..., None]
) -> None:
    """A message whose confirmation came too late may be there nevertheless; the fences refuse the second."""
    members = [stage.worker(HARBOR_REFRESH_TEST_CHUNK="20"), stage.beat()]
    ids = many(400)
    start("SCAN", jobs=[team.copy.s(str(number), 0.2) for number in range(20)])
    succeed(ids[:200])
    wait_for(lambda: len(stage.lines()) >= 3, "the jobs to be in full swing")
    stage.broker.signal(signal.SIGSTOP)
    try:
        with pytest.raises(DOWN):
            waiting(WORK)
        succeed(ids[200:])
    finally:
        stage.broker.signal(signal.SIGCONT)
    ends(*members)
    assert statuses() == {"Success": 401}
    assert stage.lines() == sorted(f"copy {number}" for number in range(20))


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[RabbitMQ]:
    """It looks twice a second for messages that were not acknowledged for three."""
    lines, terms = ("consumer_timeout = 3000",), "{channel_tick_interval, 500}"
    with RabbitMQ(tmp_path / "impatient", lines=lines, terms=terms) as server:
        yield server


def test_jobs_that_take_or_wait_longer_than_the_consumer_timeout_run_once_and_end_no_worker(
    cluster: Cluster, redis: Redis, impatient: RabbitMQ, log: Path
) -> None:
    with uses(servers.redis.url, impatient.url) as env:
        stage = Stage(cluster, impatient, env, log)
        members = [stage.worker(), stage.beat()]
        waits = team.copy.s("waits").set(countdown=10)
        start("SCAN", jobs=[team.copy.s("long", 15), waits, *(team.copy.s(str(number)) for number in range(3))])
        wait_for(lambda: statuses() == {"Success": 1}, "the jobs", log=members[0].log)
        assert "PRECONDITION_FAILED - delivery acknowledgement" in members[0].text()
        assert stage.lines() == ["copy 0", "copy 1", "copy 2", "copy long", "copy waits"]
        assert [status for status, _ in runs()] == ["Success"] * 5
        assert [member.log.name for member in members if member.died()] == []
