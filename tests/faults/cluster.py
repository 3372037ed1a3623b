"""Workers and beats of a test, as real processes, each in its own process group."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from harbor_refresh.local.process import spawn
from harbor_refresh.tasks.pipeline.schedule import as_interval
from tests import servers
from tests.waiting import wait_for

INTERVAL = """
WITH given AS (
    INSERT INTO django_celery_beat_intervalschedule (every, period) VALUES (%(every)s, %(period)s) RETURNING id
)
UPDATE django_celery_beat_periodictask SET interval_id = given.id FROM given WHERE name = %(name)s
"""
ROOT = Path(__file__).resolve().parent.parent.parent

#: The intervals of production, shortened so that a recovery takes a second and not ten. The stale limit is an
#: hour, because it must not help a recovery that is promised within seconds.
SHORT = {
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "1",
    "HARBOR_REFRESH_TEST_HEARTBEAT_SECONDS": "0.2",
    "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "1.5",
    "HARBOR_REFRESH_TEST_STALE_SECONDS": "3600",
    "HARBOR_REFRESH_TEST_DATABASE_PAUSE_SECONDS": "0.5",
    "HARBOR_REFRESH_TEST_RECONCILE_GRACE_SECONDS": "1",
    "REFRESH_VISIBILITY_TIMEOUT_SECONDS": "3",
}
#: The intervals of the schedule that are shortened, by the names of their rows.
EVERY = {"Recover stale claims": 0.5, "Reconcile": 1.0}


def set_intervals(url: str, every: Mapping[str, float]) -> None:
    """Write the seconds between two runs to the rows of beat's schedule, also beside the tables of a Harbor."""
    if not every:
        return
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL search_path = harbor_refresh, public")
        for name, seconds in every.items():
            connection.execute(INTERVAL, {"name": name, **as_interval(seconds)})


class Member:
    """One worker or beat: its process group and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(60)

    def died(self) -> bool:
        return self.process.poll() is not None

    def ends_its_ticks(self) -> None:
        """Wait for the end of all ticks that this worker has received by now. One of them may have read what is no
        longer true, such as that refreshing is not paused, and claim afterwards."""
        begun = {tick for tick, _ in self._ticks()}

        def have_ended() -> bool:
            return begun <= {tick for tick, word in self._ticks() if word != "received"}

        wait_for(have_ended, "the ticks that it has received to end", log=self.log)

    def _ticks(self) -> list[tuple[str, str]]:
        """The id of a tick, and what became of it: it was received, and it has succeeded."""
        return re.findall(r"Task tasks\.claim_batch\[(\S+)\] (\w+)", self.text())


class Cluster:
    """`root` is the checkout whose programs run."""

    def __init__(self, database: str, directory: Path, root: Path = ROOT) -> None:
        self.directory = directory
        self.root = root
        self.members: list[Member] = []
        self.every = dict(EVERY)
        self._written: tuple[str, Mapping[str, float]] | None = None
        self.env = {
            **os.environ,
            **SHORT,
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": servers.postgres.url_for(database),
            "REDIS_URL": servers.redis.url,
        }

    def worker(
        self,
        name: str = "worker",
        *,
        concurrency: int = 2,
        pool: str = "prefork",
        queues: Sequence[str] = (),
        sabotage: dict[str, Any] | None = None,
        include: Sequence[str] = (),
        options: Sequence[str] = (),
        **env: str,
    ) -> Member:
        app = "tests.faults.sabotage" if sabotage else "harbor_refresh"
        if sabotage:
            env["SABOTAGE"] = json.dumps(sabotage)
        member = self._spawn(
            [
                "worker",
                "-n",
                f"{name}@%h",
                "-c",
                str(concurrency),
                "-P",
                pool,
                "--without-gossip",
                "--without-mingle",
                "-E",
            ]
            + [f"--include={','.join(include)}"] * bool(include)
            + [f"--queues={','.join(queues)}"] * bool(queues)
            + list(options),
            app,
            env,
        )
        wait_for(lambda: " ready." in member.text(), f"{name} to be ready", log=member.log)
        return member

    def beat(self, every: Mapping[str, float] | None = None, **env: str) -> Member:
        """Start beat with these intervals in its rows, as an administrator would have set them."""
        wanted = env.get("DATABASE_URL", self.env["DATABASE_URL"]), self.every | dict(every or {})
        if wanted != self._written:  # once, because a later beat may start while the database is down
            set_intervals(*wanted)
            self._written = wanted
        schedule = ["beat", "--pidfile="]
        return self._spawn(schedule, "harbor_refresh", env)

    def _spawn(self, arguments: list[str], app: str, env: dict[str, str]) -> Member:
        return self.start(arguments[0], [sys.executable, "-m", "celery", "-A", app, *arguments], **env)

    def start(self, name: str, command: list[str], **env: str) -> Member:
        """Start a program of the cluster."""
        log = self.directory / f"{name}-{len(self.members)}.log"
        process = spawn(command, log=log, cwd=self.root, env={**self.env, **env})
        member = Member(process, log)
        self.members.append(member)
        return member

    def logs(self) -> str:
        return "\n".join(member.text() for member in self.members)

    def says(self, words: str) -> None:
        """Wait for a line of the log. A worker writes it after the commit that the database already shows."""
        wait_for(lambda: words in self.logs(), f"a worker or beat to say {words!r}")

    def end(self) -> None:
        for member in self.members:
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGKILL)
        for member in self.members:
            member.process.wait(60)
