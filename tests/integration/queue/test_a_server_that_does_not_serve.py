"""A Redis that was demoted, refuses writes or hangs: the same long-lived clients, before, meanwhile and after."""

import os
import signal
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.queue import connection
from harbor_refresh.tasks.queue.connection import (
    NotServing,
    WrongServer,
    connect,
)
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.concurrency import at_once, wait_until
from tests.integration.redis_state import Redis, only_waits_take_time
from tests.proxy import Proxy

TIMEOUT_SECONDS = 1.0


def long_lived(url: str, timeout: float = 5.0) -> ExecutionQueue:
    queue = ExecutionQueue(refresh_settings(), connect(url, timeout, tries=4), connect(url, timeout, tries=1))
    queue.mark(["1:A"])
    assert queue.claim("me", 1).claim.members == ("1:A",)
    return queue


@pytest.mark.slow
def test_after_a_failover_the_patient_client_goes_on_and_the_single_one_with_the_next_verb(
    server: EmbeddedRedis, operator: Redis, tmp_path: Path
) -> None:
    with EmbeddedRedis(tmp_path / "standby") as standby, Redis.from_url(standby.url) as other:
        other.replicaof("127.0.0.1", server.port)
        wait_until(lambda: other.info("replication")["master_link_status"] == "up", "the replica")
        proxy = Proxy(server.port)
        queue = long_lived(f"redis://127.0.0.1:{proxy.port}/0")
        written = operator.info("replication")["master_repl_offset"]
        wait_until(lambda: other.info("replication")["slave_repl_offset"] >= written, "the replica to have it all")
        other.replicaof("NO", "ONE")
        proxy.target = standby.port
        operator.replicaof("127.0.0.1", standby.port)
        wait_until(lambda: operator.role()[0] == b"slave", "the demotion")
        with pytest.raises(QueueUnavailable, match=r"^Redis: WrongServer: READONLY "):
            queue.claim("me", 1)
        queue.mark(["2:A"])
        assert not queue.lost(["2:A"])
        assert queue.claim("me", 1).claim.members == ("2:A",)
        assert not other.sismember(queue.keys.queue, "2:A")
        proxy.close()


def test_what_a_server_refuses_is_not_asked_again_and_works_once_it_serves(
    server: EmbeddedRedis, operator: Redis
) -> None:
    queue = long_lived(server.url)
    operator.config_set("maxmemory", "1mb")
    for verb in (lambda: queue.mark(["2:A"]), lambda: queue.claim("me", 1)):
        with pytest.raises(QueueUnavailable, match=r"^Redis: NotServing: OOM "):
            verb()
    operator.config_set("maxmemory", "0")
    stats = operator.info("commandstats")["cmdstat_evalsha"]
    assert stats["failed_calls"] + stats["rejected_calls"] == 2 + 2, "two that knew no script, and one a verb"
    queue.mark(["2:A"])
    assert not queue.lost(["2:A"])
    assert queue.claim("me", 1).claim.members == ("2:A",)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("READONLY You can't write against a read only replica.", WrongServer),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", WrongServer),
        ("UNBLOCKED force unblock from blocking operation, instance state changed", WrongServer),
        ("MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.", NotServing),
        ("NOREPLICAS Not enough good replicas to write.", NotServing),
        ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", NotServing),
        ("EXECABORT Transaction discarded because of: OOM command not allowed", NotServing),
        ("ERR Error running script (call to f_0a): @user_script:9: -OOM command not allowed", NotServing),
        (
            "ERR Error running script (call to f_0a): @user_script:9: @user_script: 9: -READONLY You can't write",
            WrongServer,
        ),
        ("LOADING Redis is loading the dataset in memory", NoConnection),
        ("EXECABORT Transaction discarded because of previous errors.", ResponseError),
        ("WRONGTYPE Operation against a key: OOM is its name", ResponseError),
        ("BUSYKEY Target key name already exists.", ResponseError),
    ],
)
def test_an_answer_is_known_by_its_code(redis: Redis, answer: str, kind: type[Exception]) -> None:
    from tests import servers

    client = connect(servers.redis.url, 5.0, tries=1)
    with pytest.raises(QueueUnavailable) as raised:
        client.eval("return redis.error_reply(ARGV[1])", 0, answer)
    cause = raised.value.__cause__
    assert isinstance(cause, kind)
    assert isinstance(cause, NotServing) == (kind in (NotServing, WrongServer))
    assert isinstance(cause, WrongServer) == (kind is WrongServer)
    assert client.ping()


@pytest.mark.parametrize("is_connected", [True, False], ids=["over an open connection", "over a new one"])
def test_a_server_that_hangs_is_tried_twice_by_a_patient_verb_and_once_by_a_single_one(
    server: EmbeddedRedis, operator: Redis, is_connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_waits_take_time(monkeypatch)
    queue = long_lived(server.url, TIMEOUT_SECONDS)
    if not is_connected:
        queue._redis.connection_pool.disconnect()
    assert server.pid
    before = operator.info("stats")["total_connections_received"]

    def made() -> int:
        return int(operator.info("stats")["total_connections_received"]) - before

    os.kill(server.pid, signal.SIGSTOP)
    with pytest.raises(QueueUnavailable, match=r"^Redis: TimeoutError: "):
        queue.mark(["2:A"])
    with pytest.raises(QueueUnavailable, match=r"^Redis: TimeoutError: "):
        queue.claim("me", 1)
    os.kill(server.pid, signal.SIGCONT)
    expected = 1 if is_connected else 2
    wait_until(lambda: made() >= expected, "the server to accept what had come meanwhile")
    assert made() == expected, "the single client used the one it had"
    queue.mark(["3:A"])
    assert not queue.lost(["3:A"])
    assert queue.claim("me", 1).claim.members == ("3:A",), "the claim without an answer has taken the other"


def test_an_absence_is_remembered_until_the_page_has_ended_and_by_its_thread_alone(
    server: EmbeddedRedis, operator: Redis
) -> None:
    queue = long_lived(server.url)
    with connection.absence_remembered():
        queue.mark(["2:A"])
        assert not queue.lost(["2:A"])
        operator.config_set("maxmemory", "1mb")
        with pytest.raises(QueueUnavailable, match=r"^Redis: NotServing: OOM "):
            queue.mark(["3:A"])
        operator.config_set("maxmemory", "0")
        with pytest.raises(QueueUnavailable, match=r"^Redis: NotServing: OOM "):
            queue.mark(["3:A"])
        at_once(lambda: queue.mark(["4:A"]))
    queue.mark(["3:A"])
    assert not queue.lost(["3:A", "4:A"])
