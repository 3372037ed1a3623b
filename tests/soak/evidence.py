"""The evidence that the judge reads, and how it is collected."""

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The name of the traffic's sessions in the database.
SESSION = "soak-traffic"
#: Seconds by which the beginning of a process may seem later than it was.
CLOCK_TICK = 0.05


@dataclass(frozen=True)
class Process:
    """A process, and when it began: another one may have its number later."""

    pid: int
    since: float


@dataclass(frozen=True)
class Run:
    """One run of a job. `ended` is the time of its last line, or None if its process died before it wrote one.
    `alive_until` is the last time at which its process was seen alive."""

    job: str
    task: int
    kind: str
    revision: int
    pid: int
    worker: int
    began: float
    ended: float | None = None
    outcome: str = ""
    alive_until: float = 0.0
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def until(self) -> float:
        return self.ended if self.ended is not None else max(self.began, self.alive_until)


@dataclass(frozen=True)
class Change:
    """A task has this status from the commit at `at` on. `is_ours`: the traffic made the change, not a worker."""

    number: int
    at: float
    is_ours: bool
    task: int
    execution: int
    job: str
    status: str
    code: int
    revision: int
    runs: int
    message: str

    @property
    def is_final(self) -> bool:
        return self.code == 3


@dataclass(frozen=True)
class JobRow:
    """The state of a job at the end. `needs` are the tasks of the jobs that it needs."""

    job: str
    task: int
    execution: int
    kind: str
    status: str
    message: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Freeze:
    """The time during which a worker and its processes were stopped."""

    worker: int
    since: float
    until: float


@dataclass(frozen=True)
class Ask:
    """A call of the traffic that stops, deletes or retries an execution. Its outcome: it `returned`, it `raised`,
    or its transaction was `rolled back`."""

    what: str
    execution: int
    outcome: str
    at: float


@dataclass(frozen=True)
class Evidence:
    runs: list[Run]
    changes: list[Change]
    jobs: list[JobRow]
    freezes: list[Freeze]
    asks: list[Ask]
    #: When PostgreSQL was killed.
    crashes: list[float] = field(default_factory=list)

    def changes_by_task(self) -> dict[int, list[Change]]:
        """The changes of each task in the order of its row's versions, which is the order of the commits."""
        found: dict[int, list[Change]] = defaultdict(list)
        for one in sorted(self.changes, key=lambda change: change.number):
            found[one.task].append(one)
        return found

    def runs_by_job(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = defaultdict(list)
        for one in sorted(self.runs, key=lambda run: run.began):
            found[one.job].append(one)
        return found


class Diary:
    """A file that records what the soak did, and when. Any thread may write to it."""

    def __init__(self, path: Path) -> None:
        self.lines: list[dict[str, Any]] = []
        self._path = path
        self._lock = threading.Lock()

    def note(self, what: str, **more: Any) -> None:
        line = {"at": time.time(), "what": what, **more}
        with self._lock:
            self.lines.append(line)
            with self._path.open("a") as file:
                file.write(json.dumps(line, default=str) + "\n")

    def of(self, what: str) -> list[dict[str, Any]]:
        with self._lock:
            return [line for line in self.lines if line["what"] == what]

    def freezes(self) -> list[Freeze]:
        return [Freeze(line["pid"], line["since"], line["until"]) for line in self.of("worker frozen")]

    def asks(self) -> list[Ask]:
        return [Ask(line["ask"], line["execution"], line["outcome"], line["at"]) for line in self.of("asked")]


def runs_of(lines: list[dict[str, Any]], alive_until: Mapping[Process, float]) -> list[Run]:
    """Build the runs from the lines that the jobs have written. A process runs one job at a time, so an "end" line
    belongs to the last "begin" line of that job in that process."""
    processes = sorted(alive_until, key=lambda one: one.since)

    def seen_alive(pid: int, at: float) -> float:
        """Return until when the process was seen that had this number then."""
        those = [one for one in processes if one.pid == pid and one.since <= at + CLOCK_TICK]
        return alive_until[those[-1]] if those else 0.0

    runs: list[Run] = []
    open_runs: dict[tuple[int, str], int] = {}
    known = {"what", "job", "task", "kind", "revision", "pid", "worker", "at", "clock"}
    for line in sorted(lines, key=lambda one: one["clock"]):
        key = (line["pid"], line["job"])
        if line["what"] == "begin":
            open_runs[key] = len(runs)
            said = {name: value for name, value in line.items() if name not in known}
            who = line["job"], line["task"], line["kind"], line["revision"], line["pid"], line["worker"]
            runs.append(Run(*who, began=line["at"], alive_until=seen_alive(line["pid"], line["at"]), said=said))
        elif key in open_runs:
            number = open_runs.pop(key)
            values = {**asdict(runs[number]), "ended": line["at"], "outcome": line["outcome"]}
            runs[number] = Run(**values)
    return runs


def lasting(looks: list[list[str]]) -> list[str]:
    """The lines of the last look that every look before it has, too. Numbers in the lines are ignored."""
    last = {re.sub(r"\d+", "N", line): line for line in looks[-1]}
    seen = [{re.sub(r"\d+", "N", line) for line in look} for look in looks]
    return [line for shape, line in last.items() if all(shape in look for look in seen)]


def lines_of(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


CHANGES = """
    SELECT number, extract(epoch FROM pg_xact_commit_timestamp(made_in))::float8, session, task_id, execution_id,
           job_id, status, status_code, revision, run_count, message
    FROM soak_change ORDER BY number
"""
JOBS = """
    SELECT t.job_id, t.id, t.execution_id, j.name, t.status, t.status_message,
           ARRAY(SELECT needed_id FROM execution_need WHERE job_id = j.task_id)
    FROM execution_job j JOIN task t ON t.id = j.task_id ORDER BY t.id
"""


def from_database() -> tuple[list[Change], list[JobRow]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(CHANGES)
        changes = [
            Change(number, at, session == SESSION, *rest)  # type: ignore[arg-type]
            for number, at, session, *rest in cursor.fetchall()
        ]
        cursor.execute(JOBS)
        jobs = [
            JobRow(job, task, execution, name.removeprefix("soak."), *rest, tuple(needs))
            for job, task, execution, name, *rest, needs in cursor.fetchall()
        ]
    return changes, jobs
