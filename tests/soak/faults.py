"""Make the faults. Faults of different servers overlap; two faults of one server wait for each other."""

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from redis import Redis, RedisError

from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.live_workers import TTL_SECONDS
from harbor_refresh.tasks.queue.keys import KINDS, Keys
from tests.soak.evidence import Diary
from tests.soak.plan import Fault
from tests.soak.servers import PostgresTier, RedisTier, Workers

#: The keys of the broker, and the share of them among the keys that are deleted.
#: Without `unacked_index` alone, messages of a killed worker stay (docs/explanation/guarantees.md, Not covered).
BROKER_KEYS = ("unacked", WORK, TICKS, JOBS, DELIVERIES)
BROKER_SHARE = 0.15
#: A node that is silent for so long may be dead: it is suspected after its ttl, and dead after another.
DEAD_SECONDS = 2 * TTL_SECONDS

#: Our keys that hold what others have said.
SAID = (
    *("queue", "processing", "attempts", "nodes", "waiting", "heat", "marks", "presence"),
    *("ticked", "cursor"),
)


def write_rubbish(client: Redis, key: str, kind: str, word: bytes) -> None:
    match kind:
        case "set":
            client.sadd(key, word, b"0:X", b"7", b"7:a:b", b"7:X:host:not-a-number", b"99999999999999999999:X")
        case "zset":
            client.zadd(key, {word: 1})
        case "hash":
            client.hset(key, mapping=dict.fromkeys((word, b"since", b"heard"), word))
        case _:
            client.set(key, word)


class Faults:
    def __init__(self, redis: RedisTier, postgres: PostgresTier, workers: Workers, diary: Diary) -> None:
        self.redis = redis
        self.postgres = postgres
        self.workers = workers
        self.diary = diary
        self.done: Counter[str] = Counter()
        self.failed: list[str] = []
        self._threads: list[threading.Thread] = []

    def run(self, faults: Sequence[Fault], seconds: float) -> None:
        """Make each fault at its time. Return when the time is over and each fault has ended."""
        start = time.monotonic()
        for fault in faults:
            time.sleep(max(0.0, start + fault.at - time.monotonic()))  # the plan gives each fault its time
            thread = threading.Thread(target=self._make, args=(fault,), name=f"{fault.name} {fault.number}")
            thread.start()
            self._threads.append(thread)
        time.sleep(max(0.0, start + seconds - time.monotonic()))  # the traffic goes on until then
        for thread in self._threads:
            thread.join()

    def _make(self, fault: Fault) -> None:
        make: Callable[[Random], str | None] = getattr(self, fault.name)
        since = time.time()
        try:
            told = make(fault.random)
        except Exception:
            self.failed.append(f"{fault.name}: {traceback.format_exc()}")
            self.diary.note("fault failed", name=fault.name, error=traceback.format_exc())
        else:
            self.done[fault.name] += 1
            self.diary.note("fault", name=fault.name, told=told or "", since=since, until=time.time())

    def redis_snapshot(self, random: Random) -> None:
        with self.redis.lock:
            self.redis.take_snapshot()

    def redis_restore(self, random: Random) -> str:
        """Restore Redis, mostly from one of the last three snapshots, sometimes from any of them."""
        with self.redis.lock:
            among = self.redis.snapshots if random.random() < 0.3 else self.redis.snapshots[-3:]
            chosen = random.choice(among) if among else None
            self.redis.restore(chosen, random.uniform(0, 4))
            return f"snapshot {chosen.stem if chosen else 'none'} of {len(self.redis.snapshots)}"

    def redis_flush(self, random: Random) -> None:
        with self.redis.lock:
            self.redis.client().flushall()

    def redis_lose_key(self, random: Random) -> str:
        with self.redis.lock:
            client = self.redis.client()
            names = sorted(vars(Keys(refresh_settings().key_prefix)).values())
            if random.random() < BROKER_SHARE:
                names = list(BROKER_KEYS)
            there = [name for name in names if client.exists(name)]
            chosen = random.choice(there) if there else "none"
            client.delete(chosen)
            return chosen

    def redis_freeze(self, random: Random) -> None:
        with self.redis.lock:
            self.redis.freeze(random.uniform(1, 8))

    def redis_refuse_writes(self, random: Random) -> None:
        """Make Redis refuse writes, as if its memory were full."""
        with self.redis.lock:
            client = self.redis.client()
            client.config_set("maxmemory", "1mb")
            try:
                time.sleep(random.uniform(1, 6))  # chance decides how long writes are refused
            finally:
                client.config_set("maxmemory", "0")

    def redis_failover(self, random: Random) -> str:
        kill_old = random.random() < 0.5
        behind = random.choice([0.0, random.uniform(0, 4)])
        with self.redis.lock:
            self.redis.fail_over(behind, kill_old=kill_old)
        return f"{behind:.1f} s behind, the old one {'killed' if kill_old else 'lives on'}"

    def redis_cut(self, random: Random) -> None:
        """End all connections to Redis, those of the broker as well, with the answers that are on their way."""
        self.redis.proxy.cut()

    def redis_rubbish(self, random: Random) -> str:
        """Write into our keys what no release of ours writes, of the type that each key has."""
        with self.redis.lock:
            client = self.redis.client()
            chosen = random.choice(SAID)
            key = getattr(Keys(refresh_settings().key_prefix), chosen)
            for _ in range(random.choice([1, 3, 50])):
                write_rubbish(client, key, KINDS[chosen], random.randbytes(8))
        return chosen

    def postgres_cut(self, random: Random) -> None:
        """End all connections to PostgreSQL, in the middle of their transactions."""
        self.postgres.proxy.cut()

    def postgres_hold_rows(self, random: Random) -> None:
        """Lock some executions, for longer than a statement waits or not."""
        with self.postgres.lock:
            self.postgres.hold(
                "SELECT FROM execution WHERE id %% 7 = %s ORDER BY id FOR UPDATE",
                random.randrange(7),
                seconds=random.uniform(1, 8),
            )

    def postgres_hold_table(self, random: Random) -> None:
        """Lock a whole table, as a migration does: for less than `lock_timeout`, or for longer."""
        with self.postgres.lock:
            self.postgres.hold("LOCK TABLE task IN ACCESS EXCLUSIVE MODE", seconds=random.uniform(1, 12))

    def postgres_restart(self, random: Random) -> None:
        with self.postgres.lock:
            self.postgres.restart(random.uniform(0, 5))

    def postgres_freeze(self, random: Random) -> None:
        with self.postgres.lock:
            self.postgres.freeze(random.uniform(5, 25))

    def postgres_promote(self, random: Random) -> None:
        with self.postgres.lock:
            self.postgres.fail_over(random.uniform(0, 3), random.uniform(0, 2))

    def worker_kill(self, random: Random) -> str:
        name, pause = random.choice(self.workers.names), random.uniform(0, 4)
        with self.workers.locks[name]:
            self.workers.kill(name)
            time.sleep(pause)  # chance decides how long the worker is down
            self.workers.start(name)
        return name

    def worker_kill_child(self, random: Random) -> str:
        name, choose = random.choice(self.workers.names), random.random()
        with self.workers.locks[name]:
            self.workers.kill_child(name, choose)
        return name

    def worker_freeze(self, random: Random) -> str:
        """Freeze a worker for longer than a node may be silent."""
        name, more = random.choice(self.workers.names), random.uniform(0.5, 4)
        with self.workers.locks[name]:
            self.workers.freeze(name, DEAD_SECONDS + more)
        return name

    def worker_terminate(self, random: Random) -> str:
        name = random.choice(self.workers.names)
        with self.workers.locks[name]:
            self.workers.terminate(name, random.choice([2, 12]))
            self.workers.start(name)
        return name

    def beat_kill(self, random: Random) -> None:
        with self.workers.beat_lock:
            self.workers.beat.kill()
            time.sleep(random.uniform(0, 3))  # chance decides how long no beat runs
            self.workers.beat = self.workers.new_beat()

    def beat_second(self, random: Random) -> None:
        second = self.workers.new_beat()
        time.sleep(random.uniform(3, 10))  # chance decides how long two beats run
        second.kill()

    def make_whole(self) -> None:
        """Repair what faults have left, so that the servers, the workers and one beat run."""
        with suppress(RedisError):
            self.redis.client().config_set("maxmemory", "0")
        self.redis.primary.start()
        self.postgres.primary.start()
