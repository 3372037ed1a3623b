"""The servers of one seed, each behind a fixed address, and its workers and beats."""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from redis import Redis, ResponseError
from redis.backoff import NoBackoff
from redis.retry import Retry

from harbor_refresh.local import LocalError
from harbor_refresh.local.postgres import DATABASE, ROLE, EmbeddedPostgres
from harbor_refresh.local.process import spawn, tail
from harbor_refresh.local.redis import EmbeddedRedis
from tests import servers
from tests.faults.cluster import Cluster, Member
from tests.proxy import HoldsAnswers, Proxy
from tests.soak.evidence import Diary, Process
from tests.standing_still import standing_still
from tests.waiting import wait_for

HOST = "127.0.0.1"
#: The defaults of redis.conf, except that the soak takes the snapshots.
REDIS = ("--appendonly", "no", "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "16mb")
SNAPSHOT = "dump.rdb"
POSTGRES = {
    **servers.postgres.parameters,
    "track_commit_timestamp": "on",
    "max_connections": "100",
    "wal_receiver_status_interval": "1s",
}


FOLLOWERS = "SELECT count(*) FROM pg_stat_replication"
BEAT = "beat"
#: Fields of /proc/PID/stat behind the name of the program: the state, and the beginning in ticks since the boot.
STATE, BEGAN = 0, 19
BOOTED = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class RedisTier:
    """The address of Redis, and the server to which it leads now."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = threading.Lock()
        self.snapshots: list[Path] = []
        self._replaced: list[EmbeddedRedis] = []
        self.primary = self._made()
        self.proxy = Proxy(self.primary.port)
        #: The address at which a replica finds the primary.
        self._link = HoldsAnswers(self.primary.port)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.proxy.port}/0"

    def client(self, server: EmbeddedRedis | None = None) -> Redis:
        """A client of the server itself, not through the address."""
        at_once = Retry(NoBackoff(), 0)
        return Redis(host=HOST, port=(server or self.primary).port, socket_timeout=10, retry=at_once)

    def take_snapshot(self) -> None:
        wait_for(self._saved, "a snapshot")
        copy = self.directory / f"{len(self.snapshots)}.rdb"
        shutil.copy(self.primary.directory / SNAPSHOT, copy)
        self.snapshots.append(copy)

    def _saved(self) -> bool:
        """Take a snapshot; False if Redis is just making one for a replica."""
        try:
            return bool(self.client().save())
        except ResponseError as exc:
            if "in progress" not in str(exc):
                raise
            return False

    def restore(self, snapshot: Path | None, seconds_away: float) -> None:
        """Kill the server and start it again with the data of the snapshot, or empty."""
        self.primary.kill()
        there = self.primary.directory / SNAPSHOT
        there.unlink(missing_ok=True)
        if snapshot:
            shutil.copy(snapshot, there)
        time.sleep(seconds_away)  # chance decides how long the server is down
        self.primary.start()

    def freeze(self, seconds: float) -> None:
        pid = self.primary.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)  # chance decides how long it is frozen
        finally:
            os.kill(pid, signal.SIGCONT)

    def fail_over(self, seconds_behind: float, *, kill_old: bool) -> None:
        """Fail over to a replica that is so many seconds behind. The old primary is killed, or becomes a replica
        of the new primary and closes none of its connections."""
        old, new = self.primary, self._made()
        replica = self.client(new)
        self._link.target = old.port
        replica.replicaof(HOST, str(self._link.port))
        wait_for(lambda: replica.info("replication")["master_link_status"] == "up", "the replica to follow")
        self._link.flows.clear()
        time.sleep(seconds_behind)  # the replica misses the writes of these seconds
        replica.replicaof("NO", "ONE")
        self._link.flows.set()
        self.proxy.target = new.port
        self.primary = new
        for one in self._replaced:
            one.kill()
        self._replaced = [old]
        if kill_old:
            old.kill()
        else:
            self.client(old).replicaof(HOST, str(new.port))

    def end(self) -> None:
        for one in (*self._replaced, self.primary):
            one.kill()
        self.proxy.close()
        self._link.close()

    def _made(self) -> EmbeddedRedis:
        number = 1 + len(list(self.directory.glob("redis-*")))
        return EmbeddedRedis(self.directory / f"redis-{number}", extra=REDIS).start()


class Standby(EmbeddedPostgres):
    """A standby that follows a primary."""

    def __init__(self, directory: Path, primary: EmbeddedPostgres) -> None:
        super().__init__(directory, parameters=primary.parameters)
        self.primary = primary

    def _make_data(self, programs: Path) -> None:
        self.directory.mkdir(exist_ok=True)
        self.directory.chmod(0o755)
        self._data.mkdir(mode=0o700)
        if self._account:
            os.chown(self._data, self._account.pw_uid, self._account.pw_gid)
        source = f"host={HOST} port={self.primary.port} user={ROLE} application_name=standby"
        words = ["-D", self._data, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        made = spawn([programs / "pg_basebackup", *words], log=self.log, account=self._account)
        if made.wait() != 0:
            raise LocalError(f"pg_basebackup failed. Its log ({self.log}) ends:\n{tail(self.log)}")


class PostgresTier:
    """The address of PostgreSQL, and the server to which it leads now."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = threading.Lock()
        self.crashes: list[float] = []
        self._servers: list[EmbeddedPostgres] = []
        self.primary = self.made(EmbeddedPostgres(directory / "postgres-1", parameters=POSTGRES))
        self.proxy = Proxy(self.primary.port)

    @property
    def url(self) -> str:
        return f"postgresql://{ROLE}@{HOST}:{self.proxy.port}/{DATABASE}"

    def _crash(self) -> None:
        self.crashes.append(time.time())
        self.primary.kill()

    def restart(self, seconds_away: float) -> None:
        self._crash()
        time.sleep(seconds_away)  # chance decides how long the server is down
        self.primary.start()

    def freeze(self, seconds: float) -> None:
        with standing_still(self.primary):
            time.sleep(seconds)  # chance decides how long it is frozen

    def fail_over(self, seconds_together: float, seconds_away: float, *, synchronous: bool = True) -> None:
        """Fail over to a standby. If it is synchronous, it has each commit before it is acknowledged, so that none
        is lost. If not, it lacks the commits of its last seconds."""
        new = self.made(Standby(self.directory / f"postgres-{len(self._servers) + 1}", self.primary))
        wait_for(lambda: self._asked(self.primary, FOLLOWERS)[0], "the standby")
        if synchronous:
            self._told(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            self._told(self.primary, "SELECT pg_reload_conf()")
            is_synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            wait_for(lambda: self._asked(self.primary, is_synchronous)[0], "the standby to be synchronous")
        else:
            self._told(new, "ALTER SYSTEM SET primary_conninfo = ''")
            self._told(new, "SELECT pg_reload_conf()")
            wait_for(lambda: not self._asked(self.primary, FOLLOWERS)[0], "the standby to fall behind")
        time.sleep(seconds_together)  # commits of these seconds reach both servers, or only the primary
        self._crash()
        time.sleep(seconds_away)  # chance decides how long no server serves
        self._told(new, "SELECT pg_promote()")
        self.proxy.target = new.port
        old, self.primary = self.primary, new
        old.discard()

    def hold(self, statement: str, *values: object, seconds: float) -> None:
        """Hold the locks of a statement for so many seconds."""
        with psycopg.connect(self.primary.url) as connection:
            connection.execute(statement, values or None)
            time.sleep(seconds)  # chance decides how long they are held
            connection.rollback()

    def end(self) -> None:
        for one in self._servers:
            one.discard()
        self.proxy.close()

    def made(self, server: EmbeddedPostgres) -> EmbeddedPostgres:
        """Start it without the data that a killed run may have left at its place."""
        server.discard()
        self._servers.append(server)
        return server.start()

    @staticmethod
    def _asked(server: EmbeddedPostgres, statement: str) -> tuple[int, ...]:
        with psycopg.connect(server.url, autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
        assert row
        return row

    def _told(self, server: EmbeddedPostgres, statement: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(statement)


class Workers:
    """The workers and beats. What is done to them is recorded in the diary, for the judge."""

    def __init__(self, cluster: Cluster, diary: Diary) -> None:
        self.names = "abcd" if "SOAK_LIMIT" in os.environ else "ab"
        self.cluster = cluster
        self.diary = diary
        self.locks = {name: threading.Lock() for name in self.names}
        self.members: dict[str, Member] = {}
        self.beat_lock = threading.Lock()
        self.beat = self.new_beat()
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        options = ["-n", f"{name}@%h", "-c", "3", "-P", "prefork", "--without-gossip"]
        command = [sys.executable, "-m", "celery", "-A", "harbor_refresh", "worker", *options]
        member = self.cluster.start(f"worker-{name}", [*command, "--include=tests.soak.jobs"])
        self.members[name] = member
        self.diary.note("worker started", name=name, pid=member.process.pid)

    def new_beat(self) -> Member:
        return self.cluster.beat()

    def kill(self, name: str) -> None:
        member = self.members[name]
        self.diary.note("worker killed", name=name, pid=member.process.pid)
        member.kill()

    def terminate(self, name: str, seconds: float) -> None:
        """Send SIGTERM, and SIGKILL after so many seconds, as an orchestrator does."""
        member = self.members[name]
        self.diary.note("worker terminated", name=name, pid=member.process.pid)
        with suppress(ProcessLookupError):
            os.kill(member.process.pid, signal.SIGTERM)
        with suppress(AssertionError):
            wait_for(member.died, "the worker to end", seconds=seconds)
        member.kill()

    def freeze(self, name: str, seconds: float) -> None:
        member = self.members[name]
        begun = time.time()
        member.signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)  # the node must be silent for so long
        finally:
            self.diary.note("worker frozen", pid=member.process.pid, since=begun, until=time.time())
            member.signal(signal.SIGCONT)

    def kill_child(self, name: str, choose: float) -> None:
        """Kill a child of a ready worker. By Celery's design, a worker that cannot start its processes ends."""
        member = self.members[name]
        children = children_of(member.process.pid)
        if children and " ready." in member.text():
            with suppress(ProcessLookupError):
                os.kill(children[int(choose * len(children))].pid, signal.SIGKILL)

    def restart_what_ended(self) -> None:
        """Restart workers and beats that ended without a fault. Those that a fault is acting on are left out."""
        for name, lock in {**self.locks, BEAT: self.beat_lock}.items():
            if not lock.acquire(blocking=False):
                continue
            try:
                member = self.beat if name == BEAT else self.members[name]
                if not member.died():
                    continue
                self.diary.note("ended by itself", name=name, code=member.process.returncode, log=str(member.log))
                if name == BEAT:
                    self.beat = self.new_beat()
                else:
                    self.start(name)
            finally:
                lock.release()


def children_of(pid: int) -> list[Process]:
    """The living children. A zombie, which was killed and not waited for, does not count."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in children if (found := _living(child))]


def _living(pid: str) -> Process | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if not fields or fields[STATE] == "Z":
        return None
    return Process(int(pid), BOOTED + int(fields[BEGAN]) / os.sysconf("SC_CLK_TCK"))
