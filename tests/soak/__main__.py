"""Each seed in a process of its own: servers, a time of faults and traffic, a quiet time, and then all must hold.

The intervals are short, so that a recovery that is promised within an interval happens within seconds:

| recovery                         | setting                              | here     |
| -------------------------------- | ------------------------------------ | -------- |
| a node of the queue is dead      | NODE_TTL_SECONDS, heartbeat          | 4 s, 0.5 |
| its claims are recovered         | the row *Recover stale claims*       | 1 s      |
| drift is found                   | the row *Reconcile*, and its grace   | 1 s, 2 s |
| a fetched message comes back     | REFRESH_VISIBILITY_TIMEOUT_SECONDS   | 6 s      |

Jobs of dead workers are released, and overdue jobs sent again, as in production (live_workers.py, sender.py).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harbor_refresh.tasks.broker.celery_queues import JOBS, WORK
from tests import servers
from tests.faults.cluster import SHORT, Cluster, set_intervals
from tests.soak.evidence import SESSION, Diary, Evidence, Process, from_database, lasting, lines_of, runs_of
from tests.soak.plan import WEIGHTS, plan
from tests.soak.servers import PostgresTier, RedisTier, Workers, children_of

SETTINGS = {
    **SHORT,
    "HARBOR_REFRESH_TEST_HEARTBEAT_SECONDS": "0.5",
    "HARBOR_REFRESH_TEST_NODE_TTL_SECONDS": "4",
    "HARBOR_REFRESH_TEST_RECONCILE_GRACE_SECONDS": "2",
    "REFRESH_VISIBILITY_TIMEOUT_SECONDS": "6",
    "HARBOR_REFRESH_TEST_STALE_SECONDS": "300",
    "HARBOR_REFRESH_TEST_QUARANTINE_SECONDS": "3",
    "REFRESH_JOB_HOURS": "1",
}
EVERY = {"Recover stale claims": 1.0, "Reconcile": 1.0}
DATABASE = "harbor_refresh"
#: Seconds after which all must still hold.
STEADY_SECONDS = 8.0
#: The longest quiet time, even if there is still progress: a busy machine needs minutes for what is left.
LONGEST_SECONDS = 900.0
#: How many more looks are compared with the last one. A line that some of them lack is a tick at work.
LAST_LOOKS = 10


class Soak:
    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given = given
        self.folder = folder
        self.servers = servers.directory / "soak"
        self.servers.mkdir(mode=0o755)
        self.diary = Diary(folder / "diary.jsonl")
        self.runs = folder / "runs.jsonl"
        self.runs.touch()
        self.redis = RedisTier(self.servers)
        self.postgres = PostgresTier(self.servers)
        self.alive_until: dict[Process, float] = {}
        #: The longest time between two looks at the processes, which should be 0.1 s apart. It shows a machine
        #: that is too busy for the short intervals, on which live nodes look dead.
        self.longest_pause = 0.0
        self._over = threading.Event()

    def prepare(self) -> None:
        """Set up Django, and the schema with the table of changes."""
        import django
        from django.core.management import call_command
        from django.db import connection

        addresses = {"DATABASE_URL": self.postgres.url, "REDIS_URL": self.redis.url}
        os.environ.update(SETTINGS, **addresses, DJANGO_SETTINGS_MODULE="settings.test", PGAPPNAME=SESSION)
        django.setup()
        from harbor_refresh.celery import app

        app.set_default()
        call_command("migrate", verbosity=0)
        set_intervals(self.postgres.url, EVERY)
        with connection.cursor() as cursor:
            cursor.execute(Path(__file__).with_name("audit.sql").read_text())

    def run(self) -> bool:
        self.prepare()
        from tests.soak.faults import DEAD_SECONDS, Faults
        from tests.soak.judge import judge
        from tests.soak.traffic import Traffic

        self.judge = partial(judge, silent_seconds=DEAD_SECONDS)
        self.cluster = cluster = Cluster(DATABASE, self.folder)
        cluster.every.clear()  # `prepare` has written them, on another server
        cluster.env.update(os.environ, PGAPPNAME="soak-worker", SOAK_RUNS=str(self.runs))
        watcher = threading.Thread(target=self._watch, daemon=True)
        try:
            self.workers = Workers(cluster, self.diary)
            watcher.start()
            self.faults = Faults(self.redis, self.postgres, self.workers, self.diary)
            timeout = float(os.environ["REFRESH_VISIBILITY_TIMEOUT_SECONDS"])
            self.traffic = Traffic(self.given.seed, self.diary, visibility_timeout=timeout)
            self.redis.take_snapshot()
            self.traffic.begin()
            self.faults.run(
                plan(self.given.seed, 60 * self.given.minutes, self.given.without), 60 * self.given.minutes
            )
            self.faults.make_whole()
            self.traffic.end()
            return self._settle()
        finally:
            self._over.set()
            if watcher.is_alive():
                watcher.join()  # it restarts what has ended, so it must not see the end of the cluster
            cluster.end()

    def _watch(self) -> None:
        """Record which processes are alive, and restart workers that ended without a fault."""
        looked_at = time.time()
        while not self._over.wait(0.1):
            now = time.time()
            self.longest_pause = max(self.longest_pause, now - looked_at)
            looked_at = now
            for member in list(self.workers.members.values()):
                self.alive_until.update(dict.fromkeys(children_of(member.process.pid), now))
            self.workers.restart_what_ended()

    def _settle(self) -> bool:
        self.diary.note("quiet")
        began = time.monotonic()
        late = self._wait(self.given.quiet)
        seconds = time.monotonic() - began
        self.unfinished = self._unfinished()
        self._over.wait(STEADY_SECONDS)
        return self._tell(seconds, late)

    def _wait(self, seconds: float) -> list[str]:
        """Wait until all holds. Return what does not hold after so many seconds in which no run began or ended."""
        began = moved_at = time.monotonic()
        moved = -1
        while left := self._look():
            now = time.monotonic()
            if (size := self.runs.stat().st_size) != moved:
                moved, moved_at = size, now
            if now - moved_at > seconds or now - began > LONGEST_SECONDS:
                looks = [left, *(self._look() for _ in range(LAST_LOOKS))]
                return lasting(looks)
        return []

    def _look(self) -> list[str]:
        from django.db import Error, connection
        from redis import RedisError

        from harbor_refresh.executions.errors import RefreshError

        try:
            return self.what_does_not_hold()
        except (RedisError, RefreshError, Error) as exc:
            connection.close()
            return [f"the question has no answer: {exc}"]
        finally:
            self._over.wait(0.3)

    def what_does_not_hold(self) -> list[str]:
        """Check K1 to K5, as the fault tests do."""
        from examples.simulation.invariants import set_aside, violations
        from tests.faults.conftest import EXPECTED, REPLIES

        client = self.redis.client()

        def broker() -> int:
            return int(client.llen(WORK) + client.llen(JOBS) + client.hlen("unacked"))

        found = [str(one) for one in violations(broker=broker, at_most=20)]
        keys = [key for key in client.keys("*") if not key.startswith(EXPECTED) and not key.endswith(REPLIES)]
        found += [f"K5: the key {key!r} is left" for key in keys]
        return found + [f"set aside: {one}" for one in set_aside()]

    def _unfinished(self) -> dict[str, str]:
        """Where the jobs are that have not ended when the quiet time is over, and why they do not run."""
        from harbor_refresh.tasks.jobs.queries import why
        from harbor_refresh.tasks.models import Job

        left = Job.objects.exclude(state="ended").select_related("task")[:200]
        return {
            job.task.job_id: f"{job.state}, run {job.run}, sent again {job.resent} times: {why(job)}"
            for job in left
        }

    def _gather(self) -> Evidence:
        changes, jobs = from_database()
        runs = runs_of(lines_of(self.runs), self.alive_until)
        return Evidence(runs, changes, jobs, self.diary.freezes(), self.diary.asks(), self.postgres.crashes)

    def _tell(self, seconds: float, late: list[str]) -> bool:
        evidence = self._gather()
        violations = self.judge(evidence)
        others = [f"late: {one}" for one in late]
        others += [
            f"ended by itself: {line['name']}, see {line['log']}" for line in self.diary.of("ended by itself")
        ]
        others += [f"raw error: {one}" for one in self.traffic.surprises]
        instrument = [f"the instrument failed: {one}" for one in self.faults.failed]
        held = not (violations or others or instrument)
        counts = Counter(one.name for one in violations) + Counter(one.partition(":")[0] for one in others)
        kinds = Counter(row.status for row in evidence.jobs)
        tell(
            f"seed {self.given.seed}: {'HELD' if held else 'FAILED'}"
            f" | faults {_listed(self.faults.done)}"
            f" | traffic {_listed(self.traffic.done)}"
            f" | {len(evidence.jobs)} jobs ({_listed(kinds)}), {len(evidence.runs)} runs"
            f" | longest pause of the machine {self.longest_pause:.1f} s"
            f" | {'held after' if not late else 'did not hold within'} {seconds:.1f} s"
            + (f" | {_listed(counts)}" if counts else "")
        )
        self._keep(evidence, violations, others + instrument)
        for line in (*instrument, *others[:20], *map(str, violations[:40])):
            tell(f"    {line}")
        if not held:
            tell(f"    all of it, with the changes and runs of each job: {self.folder}")
        return held

    def _keep(self, evidence: Evidence, violations: Sequence[object], others: Sequence[str]) -> None:
        lines = {
            "violations": (*others, *violations),
            "unfinished": (f"{job} {what}" for job, what in self.unfinished.items()),
            "changes": evidence.changes,
            "runs": evidence.runs,
        }
        for name, found in lines.items():
            (self.folder / f"{name}.txt").write_text("".join(f"{one}\n" for one in found))

    def end(self) -> None:
        self._over.set()
        self.redis.end()
        self.postgres.end()


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def of_one(given: argparse.Namespace) -> bool:
    """Whether all held."""
    servers.redis.kill()
    servers.postgres.kill()
    folder = Path(tempfile.mkdtemp(prefix=f"harbor-refresh-soak-{given.seed}-"))
    folder.chmod(0o755)
    log = os.open(folder / "traffic.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, sys.stderr.fileno())
    held = False
    soak = Soak(given, folder)
    try:
        held = soak.run()
    except Exception:
        tell(f"seed {given.seed}: the instrument failed, see {folder}\n{traceback.format_exc()}")
    finally:
        soak.end()
        servers.pytest_unconfigure()
        if held:
            shutil.rmtree(folder)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Random faults, and what must hold.")
    parser.add_argument("seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=1, help="of faults and traffic")
    parser.add_argument("--quiet", type=float, default=45, help="seconds without a run, after which all must hold")
    parser.add_argument("--without", action="append", default=[], choices=WEIGHTS, help="leave a fault out")
    parser.add_argument(
        "--limit", type=int, help="most jobs have a limit of so many; four workers, and 200 nodes that are rows"
    )
    given = parser.parse_args()
    if given.limit:
        os.environ["SOAK_LIMIT"] = str(given.limit)
    if len(given.seeds) == 1:
        given.seed = given.seeds[0]
        return not of_one(given)
    words = [
        f"--minutes={given.minutes}",
        f"--quiet={given.quiet}",
        *(f"--without={one}" for one in given.without),
    ]
    alone = [sys.executable, "-m", "tests.soak", *words]
    failed = [seed for seed in given.seeds if subprocess.run([*alone, str(seed)], check=False).returncode]
    if failed:
        tell(f"seeds that failed: {' '.join(map(str, failed))}")
    return bool(failed)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of the traffic may still wait for a server
