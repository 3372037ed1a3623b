"""An imitation of Harbor's core, as a process: it starts executions, takes the reports of a job service,
refreshes, stops and sweeps, with the statements and the Redis commands that the real one uses.

    python -m tests.harbor.core DATABASE_URL REDIS_URL --seed 7 --seconds 60

It prints what it did as JSON, one line, when its time is over and each kind of work was done, or when it is told
to end (SIGTERM). All choices come from the seed; how they meet in time does not.

Harbor has no transaction around a report and its mark, or around the four statements of a refresh, so each
statement here commits by itself. Its clock is that of its machine, in whole seconds of UTC.
"""

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg
from redis import Redis

MARKS = "execution:status_outdate"
VENDORS = ("REPLICATION", "IMAGE_SCAN", "GARBAGE_COLLECTION", "RETENTION", "P2P_PREHEAT")
CODES = {"Pending": 0, "Scheduled": 1, "Running": 2, "Stopped": 3, "Error": 3, "Success": 3}
UNFINISHED = ("Pending", "Scheduled", "Running")
FINAL = ("Stopped", "Error", "Success")
#: What Harbor writes for a time that is none.
ZERO = "0001-01-01 00:00:00"
#: It does each of these at least once, however slow the machine.
EACH = ("started", "reports", "stopped by word", "refreshed", "attributes")
DANGLES = timedelta(hours=168)
TRIES = 5


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


class Core:
    """What one thread of a core does, on connections of its own."""

    def __init__(self, database: str, redis: str, seed: str) -> None:
        self.random = random.Random(seed)
        self.sql = psycopg.connect(database, autocommit=True, options="-c timezone=UTC -c search_path=public")
        self.redis = Redis.from_url(redis)
        self.did: Counter[str] = Counter()

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self.sql.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    # what people and policies do

    def start(self) -> None:
        """An execution with its tasks; one in ten has none, and is marked as done by hand."""
        vendor = self.random.choice(VENDORS)
        ((execution,),) = self.run(
            "INSERT INTO execution (vendor_type, vendor_id, status, status_message, trigger, extra_attrs,"
            " start_time, revision, update_time)"
            " VALUES (%s, %s, 'Running', '', 'MANUAL', %s, %s, 0, %s) RETURNING id",
            vendor,
            self.random.choice((None, 1, 2, 3)),
            self.random.choice((None, '{"repository": {"name": "library/app"}}')),
            now(),
            now(),
        )
        self.did["started"] += 1
        if self.random.random() < 0.1:
            self.run("UPDATE execution SET status = 'Success', end_time = %s WHERE id = %s", now(), execution)
            return
        for _ in range(self.random.randint(1, 3)):
            self.run(
                "INSERT INTO task (execution_id, job_id, status, status_code, status_revision, status_message,"
                " run_count, extra_attrs, creation_time, vendor_type)"
                " VALUES (%s, %s, 'Pending', 0, 0, '', %s, '{}', %s, %s)",
                execution,
                self.random.choice((None, f"{self.random.getrandbits(96):024x}")),
                self.random.choice((None, 1)),
                now(),
                vendor,
            )

    def report(self) -> None:
        """The hook: a task begins, ends, or begins again; then the mark. A stop is refreshed at once instead."""
        rows = self.run(
            "SELECT id, execution_id, vendor_type, status, status_revision FROM task WHERE id >= %s ORDER BY id"
            " LIMIT 8",
            self.random.randint(1, max(1, self._highest("task"))),
        )
        for task, execution, vendor, before, newest in self.random.sample(rows, min(4, len(rows))):
            if before in FINAL and self.random.random() > 0.05:
                continue
            status, revision = self.random.choices(FINAL, (1, 2, 7))[0], newest or 0
            if before != "Running":
                status, revision = "Running", max(int(time.time()), revision + (before in FINAL))
            self.run(
                "UPDATE task SET status = %s, status_code = %s, status_revision = %s, status_message = '',"
                " run_count = CASE WHEN status_revision < %s THEN run_count + 1 ELSE run_count END,"
                " start_time = CASE WHEN status_revision < %s THEN to_timestamp(%s) AT TIME ZONE 'UTC'"
                " ELSE start_time END, update_time = %s, end_time = %s"
                " WHERE id = %s AND (status_revision < %s OR status_revision = %s AND status_code < %s)",
                status,
                CODES[status],
                revision,
                revision,
                revision,
                revision,
                now(),
                now() if status in FINAL else ZERO,
                task,
                revision,
                revision,
                CODES[status],
            )
            self.did["reports"] += 1
            if status == "Stopped":
                self.refresh_status(execution)
            else:
                self.redis.sadd(MARKS, f"{execution}:{vendor}")

    def stop_queue(self) -> None:
        """Stop what is pending: the word and the time, no code, no end, no mark."""
        ids = [
            pk for (pk,) in self.run("SELECT id FROM task WHERE status = 'Pending' AND status_code = 0 LIMIT 500")
        ]
        chosen = self.random.sample(ids, min(3, len(ids)))
        self.run("UPDATE task SET status = 'Stopped', update_time = %s WHERE id = ANY(%s)", now(), chosen)
        self.did["stopped by word"] += len(chosen)

    def update_attributes(self) -> None:
        """UpdateExtraAttrs leaves no update_time."""
        task = self.random.randint(1, max(1, self._highest("task")))
        self.run(
            'UPDATE task SET extra_attrs = \'{"report_uuids": ["a"]}\', update_time = NULL WHERE id = %s', task
        )
        self.did["attributes"] += 1

    # what the core does by itself

    def refresh(self) -> None:
        """A pass: pop 100 at a time until the set is empty. What has failed is marked again after it."""
        failed: list[bytes] = []
        while popped := cast("list[bytes]", self.redis.spop(MARKS, 100)):
            self.did["popped"] += len(popped)
            failed += [one for one in popped if not self.refresh_status(int(one.partition(b":")[0]))]
        if failed:
            self.redis.sadd(MARKS, *failed)
            self.did["given back"] += len(failed)

    def refresh_status(self, execution: int) -> bool:
        """RefreshStatus: status, revision and time in any case, fenced by the revision; the end is written after
        it, and is not fenced."""
        for _ in range(TRIES):
            rows = self.run("SELECT revision FROM execution WHERE id = %s", execution)
            if not rows:
                return True
            words = dict(
                self.run("SELECT status, count(*) FROM task WHERE execution_id = %s GROUP BY 1", execution)
            )
            status = next((one for one in ("Running", "Error", "Stopped", "Success") if words.get(one)), None)
            if any(words.get(one) for one in UNFINISHED):
                status = "Running"
            if status is None:
                return True
            written = self.run(
                "UPDATE execution SET status = %s, revision = revision + 1, update_time = %s"
                " WHERE id = %s AND revision = %s RETURNING id",
                status,
                now(),
                execution,
                rows[0][0] or 0,
            )
            if written:
                end = "(SELECT max(end_time) FROM task WHERE execution_id = %s)" if status in FINAL else "NULL"
                values = (execution, execution) if status in FINAL else (execution,)
                self.run(f"UPDATE execution SET end_time = {end} WHERE id = %s", *values)
                self.did["refreshed"] += 1
                return True
        return False

    def sweep(self) -> None:
        """Delete the final tasks of the oldest ended executions, then the executions without tasks, each in one
        statement. Then end the executions that dangle, without an end or a revision."""
        old = [
            pk
            for (pk,) in self.run(
                "SELECT id FROM execution WHERE status = ANY(%s) ORDER BY id LIMIT 5", list(FINAL)
            )
        ]
        self.run("DELETE FROM task WHERE execution_id = ANY(%s) AND status = ANY(%s)", old, list(FINAL))
        gone = self.run(
            "DELETE FROM execution e WHERE id = ANY(%s)"
            " AND NOT EXISTS (SELECT FROM task WHERE execution_id = e.id) RETURNING id",
            old,
        )
        self.did["deleted"] += len(gone)
        before = (datetime.now(UTC) - DANGLES).strftime("%Y-%m-%d %H:%M:%S")
        for status, words in (("Error", ("Error",)), ("Stopped", ("Stopped",)), ("Success", ("Success",))):
            ended = self.run(
                "UPDATE execution e SET status = %s WHERE status = 'Running' AND start_time < %s"
                " AND NOT EXISTS (SELECT FROM task WHERE execution_id = e.id AND status = 'Running')"
                " AND EXISTS (SELECT FROM task WHERE execution_id = e.id AND status = ANY(%s)) RETURNING id",
                status,
                before,
                list(words),
            )
            self.did["ended late"] += len(ended)

    def _highest(self, table: str) -> int:
        return int(self.run(f"SELECT coalesce(max(id), 0) FROM {table}")[0][0])


def work(core: Core, acts: dict[Callable[[Core], None], int], rest: float, over: threading.Event) -> None:
    while not over.is_set():
        (act,) = core.random.choices(list(acts), list(acts.values()))
        act(core)
        over.wait(rest * core.random.random())


#: The threads of the process: what each does, how often beside each other, and its longest rest.
THREADS: dict[str, tuple[dict[Callable[[Core], None], int], float]] = {
    "hook": ({Core.start: 1, Core.report: 6}, 0.01),
    "second hook": ({Core.report: 1}, 0.01),
    "people": ({Core.stop_queue: 1, Core.update_attributes: 2}, 0.2),
    "refresh": ({Core.refresh: 1}, 2.0),
    "sweep": ({Core.sweep: 1}, 1.0),
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("redis")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    errors: list[str] = []
    cores = {name: Core(options.database, options.redis, f"{options.seed} {name}") for name in THREADS}

    def guarded(name: str) -> None:
        try:
            work(cores[name], *THREADS[name], over)
        except Exception as exc:  # reported with the figures, and ends the process
            errors.append(f"{name}: {type(exc).__name__}: {exc}")
            over.set()

    threads = [threading.Thread(target=guarded, args=(name,)) for name in THREADS]
    for one in threads:
        one.start()

    def did() -> Counter[str]:
        return sum((core.did.copy() for core in cores.values()), Counter[str]())

    over.wait(options.seconds)
    while not all(did()[one] for one in EACH) and not over.wait(0.05):
        pass
    over.set()
    for one in threads:
        one.join()
    sys.stdout.write(json.dumps({"did": did(), "errors": errors}) + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
