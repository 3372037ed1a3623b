"""What the checks look at, beside the facts of the doctor."""

from functools import cached_property
from typing import NamedTuple

from harbor_refresh.attach.dead_tasks import DeadTasks, end
from harbor_refresh.attach.wrong_statuses import Findings, Progress, repair
from harbor_refresh.executions.attached.attachment import SCHEMA
from harbor_refresh.executions.database import Statements
from harbor_refresh.tasks.checks.facts import Facts

run = Statements(__package__)


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
    def wrong(self) -> Findings:
        return repair(dry_run=True, progress=self._progress)

    @cached_property
    def dead(self) -> DeadTasks | None:
        return end(self._job_service, self._progress, dry_run=True) if self._job_service else None
