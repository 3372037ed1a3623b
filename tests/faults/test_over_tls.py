"""Queue and broker are on a Redis that speaks TLS alone and asks for a certificate and a login. The users have the
rights of deploy/attach, and no others."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.queue.connection import connect
from tests.elsewhere import uses
from tests.faults import jobs as team
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, runs, statuses, succeed
from tests.harbor.restricted import line_of, login_of
from tests.redis_with_tls import Certificates, RedisWithTLS
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

ADMINISTRATOR = "administrator"
#: Redis 7.0 does not know it, so docs/howto/attach.md says to leave it out there. Newer ones refuse it then.
LEFT_OUT = "client|setinfo"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisWithTLS]:
    """Without a login it lets no client do anything, so a login that is forgotten is seen. It keeps its users and
    its keys when it is restarted."""
    password = login_of(ADMINISTRATOR).removeprefix(f"{ADMINISTRATOR}:").removesuffix("@")
    # Redis reads its file of writes as the default user, and would leave out what that user may not do
    lines = ["user default off ~* &* +@all\n", f"user {ADMINISTRATOR} on >{password} ~* &* +@all\n"]
    lines += [line_of(file).replace(f" +{LEFT_OUT}", "") for file in ("redis.acl", "broker.acl")]
    users = tmp_path / "users.acl"
    users.write_text("".join(lines))
    extra = ("--aclfile", str(users), "--appendonly", "yes")
    with RedisWithTLS(tmp_path / "redis", Certificates(tmp_path / "certificates"), extra=extra) as server:
        yield server


@pytest.fixture
def redis(server: RedisWithTLS) -> Iterator[Redis]:
    with connect(server.address(login=login_of(ADMINISTRATOR)), 5, tries=4) as client:
        yield client


@pytest.fixture
def env(server: RedisWithTLS) -> Iterator[dict[str, str]]:
    queue, broker = (server.address(login=login_of(user)) for user in ("harbor_refresh", "harbor_refresh_broker"))
    with uses(queue, broker) as env:
        yield env


def refused(redis: Redis) -> list[str]:
    """What it has refused since its start: the command, the key or the login, and why."""
    found = [(one["reason"], one["object"], one["username"]) for one in redis.acl_log()]
    return [f"{reason}: {what} of {user}" for reason, what, user in found if what != LEFT_OUT]


def test_work_goes_on_after_a_killed_worker_and_a_restart_of_redis(  # noqa: PLR0917
    cluster: Cluster,
    worker: Callable[..., Member],
    server: RedisWithTLS,
    redis: Redis,
    env: dict[str, str],
    log: Path,
    holds: Callable[..., None],
) -> None:
    """The first worker is killed while two jobs run and others are fetched. Redis is killed while two jobs run at
    the second one, and every connection breaks."""
    beat, first = cluster.beat(**env), worker("first", **env)
    ids = many(200)
    succeed(ids[:100])
    wait_for(lambda: statuses() == {"Running": 100, "Success": 100}, "the reports to come true", log=first.log)
    held = [team.held.s("a"), team.held.s("b")]
    execution = start("SCAN", jobs=[*held, *(team.copy.s(str(n), 0.1) for n in range(20))])
    wait_for(lambda: runs(log) == {"held a": 1, "held b": 1}, "two jobs to run", log=first.log)
    succeed(ids[100:150])
    first.kill()
    second = worker("second", **env)
    wait_for(
        lambda: {"held a": 2, "held b": 2}.items() <= runs(log).items(), "the second to run them", log=second.log
    )
    assert refused(redis) == []
    server.kill()
    server.start()
    succeed(ids[150:])
    for gate in ("a.2", "b.2"):
        log.with_name(gate).touch()
    holds()
    assert statuses() == {"Success": 201}
    assert set(Task.objects.filter(execution=execution.pk).values_list("status", flat=True)) == {"Success"}
    assert runs(log).keys() == {"held a", "held b", *(f"copy {n}" for n in range(20))}
    assert refused(redis) == []
    assert [member.log.name for member in (beat, second) if member.died()] == []
