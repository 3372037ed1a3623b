"""A primary with a replica behind three Sentinels, as real processes."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as NoConnection

from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import spawn
from harbor_refresh.local.redis import EmbeddedRedis, find_redis
from tests.waiting import slowness, wait_for

NAME = "main"


class Sentinel(EmbeddedRedis):
    """`extra` is appended to its configuration, which it rewrites by itself."""

    name = "Sentinel"

    def _launch(self) -> subprocess.Popen[bytes]:
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.directory / "sentinel.conf"
        if not file.exists():
            lines = [f"port {self.port}", f"bind {LOOPBACK}", f"dir {self.directory}", *self.extra]
            file.write_text("\n".join(lines) + "\n")
        return spawn([find_redis(), str(file), "--sentinel"], log=self.log)


class BehindSentinel:
    """`servers`: the first primary and its replica. `down_after`: the milliseconds of silence of a dead one."""

    def __init__(self, servers: Sequence[EmbeddedRedis], sentinels: Sequence[Sentinel]) -> None:
        self.servers = servers
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        places = ",".join(f"{LOOPBACK}:{one.port}" for one in self.sentinels)
        return f"redis+sentinel://{places}/{NAME}/0"

    def primary(self) -> EmbeddedRedis:
        """The one that most Sentinels take for the primary."""
        told = [self._told_by(one) for one in self.sentinels if one.running]
        port = max(set(told), key=told.count)
        return next(one for one in self.servers if one.port == port)

    def replica(self) -> EmbeddedRedis:
        primary = self.primary()
        return next(one for one in self.servers if one is not primary)

    def kill_primary(self) -> EmbeddedRedis:
        """Kill it, and wait until the Sentinels name the other. Returns the killed one."""
        killed = self.primary()
        killed.kill()
        wait_for(lambda: self.primary() is not killed, "the failover")
        return killed

    def is_whole(self) -> bool:
        """Whether the replica has all that the primary has. It has not while the Sentinels make it a replica: they
        cut its connections then."""
        try:
            with Redis.from_url(self.replica().url) as client:
                return bool(client.info("replication").get("master_link_status") == "up")
        except NoConnection:
            return False

    @staticmethod
    def _told_by(sentinel: Sentinel) -> int:
        with Redis.from_url(sentinel.url) as client:
            answer: Any = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
            return int(answer[1])


@contextmanager
def behind_sentinel(directory: Path, *, count: int = 3, extra: Sequence[str] = ()) -> Iterator[BehindSentinel]:
    """Start them, and wait until each Sentinel knows the others and the replica. `extra` is for the servers."""
    down_after = round(1_000 * slowness())
    with ExitStack() as opening:
        first = opening.enter_context(EmbeddedRedis(directory / "first", extra=extra))
        follows = ("--replicaof", LOOPBACK, str(first.port))
        second = opening.enter_context(EmbeddedRedis(directory / "second", extra=(*extra, *follows)))
        configuration = (
            f"sentinel monitor {NAME} {LOOPBACK} {first.port} {count // 2 + 1}",
            f"sentinel down-after-milliseconds {NAME} {down_after}",
            f"sentinel failover-timeout {NAME} {3 * down_after}",
        )
        sentinels = [
            opening.enter_context(Sentinel(directory / f"sentinel-{number}", extra=configuration))
            for number in range(count)
        ]
        made = BehindSentinel([first, second], sentinels)
        wait_for(lambda: all(_knows(one, count) for one in sentinels) and made.is_whole(), "the Sentinels")
        yield made


def _knows(sentinel: Sentinel, count: int) -> bool:
    with Redis.from_url(sentinel.url) as client:
        state: dict[str, Any] = client.sentinel_master(NAME)
        return bool(state["num-other-sentinels"] == count - 1 and state["num-slaves"] == 1)
