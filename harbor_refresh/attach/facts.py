"""What the checks look at, beside the facts of the doctor."""

import re
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import NamedTuple, cast

from redis import Redis

from harbor_refresh.attach.dead_tasks import DeadTasks, end
from harbor_refresh.attach.wrong_statuses import Findings, Progress, repair
from harbor_refresh.executions.attached.attachment import SCHEMA
from harbor_refresh.executions.database import Statements
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, HARBORS_SET

run = Statements(__package__)

KEY = re.compile(rb"(cache:)?execution:id:[^:]+:vendor:[^:]+:status_outdate", re.DOTALL)
#: Keys that Redis looks at in one step.
STEP = 1_000
#: Harbor's Redis may hold millions of other keys. After so long the rest is not looked at.
SECONDS = 10.0


class Table(NamedTuple):
    """`execution` or `task` as the database has it; `schema` is None if there is no such table."""

    schema: str | None
    kind: str
    columns: dict[str, str]


class Right(NamedTuple):
    """What rights.sql returns: a right that the role lacks. `thing` is None if it is the membership in a role."""

    name: str
    thing: str | None
    role: str

    @property
    def grant(self) -> str:
        return f"GRANT {self.name}{f' ON {self.thing}' if self.thing else ''} TO {self.role};"


class Size(NamedTuple):
    """What covering_index.sql returns. Numbers of rows are those of the statistics; -1: there are none yet."""

    has_covering_index: bool
    schema: str
    tasks: int
    bytes: int


@dataclass(frozen=True)
class Marks:
    """How many marks there are: members of the set, keys with and without `cache:` before them. `set_type` is the
    type of the key of the set, `none` if there is no such key. `is_complete`: every key was looked at."""

    set_type: str
    in_set: int
    with_cache: int
    without_cache: int
    is_complete: bool

    @property
    def total(self) -> int:
        return self.in_set + self.with_cache + self.without_cache


def count_marks(client: Redis, seconds: float = SECONDS) -> Marks:
    """Count the marks. A key that is written or deleted meanwhile may be counted or not."""
    set_type = cast("bytes", client.type(HARBORS_SET)).decode()
    in_set = int(client.scard(HARBORS_SET)) if set_type == "set" else 0
    found: dict[bool, set[bytes]] = {True: set(), False: set()}
    cursor, ends_at = 0, monotonic() + seconds
    while True:
        cursor, keys = cast("tuple[int, list[bytes]]", client.scan(cursor, match=HARBORS_PATTERN, count=STEP))
        for key in keys:
            if match := KEY.fullmatch(key):
                found[bool(match[1])].add(key)
        if not cursor or monotonic() > ends_at:
            break
    return Marks(set_type, in_set, len(found[True]), len(found[False]), not cursor)


class AttachFacts(Facts):
    """`progress` is told how many executions were looked at. `job_service`: the address of the Redis of
    Harbor's job service, or empty."""

    def __init__(self, progress: Progress = lambda looked_at: None, job_service: str = "") -> None:
        super().__init__()
        self._job_service = job_service
        self._progress = progress

    @cached_property
    def harbors_tables(self) -> dict[str, Table]:
        found: dict[str, Table] = {}
        for name, schema, kind, column, kind_of_column in run("columns"):
            table = found.setdefault(name, Table(schema, kind or "", {}))
            if column:
                table.columns[column] = kind_of_column
        return found

    @cached_property
    def missing_rights(self) -> tuple[Right, ...]:
        return tuple(Right(*row) for row in run("rights", schema=SCHEMA))

    @cached_property
    def size(self) -> Size | None:
        rows = run("covering_index")
        return Size(*rows[0]) if rows else None

    @cached_property
    def marks(self) -> Marks:
        with self.redis.asked() as client:
            return count_marks(client)

    @cached_property
    def wrong(self) -> Findings:
        return repair(dry_run=True, progress=self._progress)

    @cached_property
    def dead(self) -> DeadTasks | None:
        return end(self._job_service, self._progress, dry_run=True) if self._job_service else None
