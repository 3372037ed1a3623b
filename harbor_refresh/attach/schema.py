"""Checks of the tables: Harbor's as they must be, and our own schema."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.executions.attached.attachment import SCHEMA, is_attached

if TYPE_CHECKING:
    from harbor_refresh.attach.facts import AttachFacts

WHOLE = ("integer", "bigint")
TEXT = ("character varying", "text")
JSON = ("json", "jsonb")
MOMENT = ("timestamp without time zone", "timestamp with time zone")

#: The columns that this service reads or writes, with the types it can use. Harbor 2.9 and newer have them all.
NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "execution": {
        "id": WHOLE,
        "vendor_type": TEXT,
        "vendor_id": WHOLE,
        "status": TEXT,
        "status_message": TEXT,
        "trigger": TEXT,
        "extra_attrs": JSON,
        "start_time": MOMENT,
        "end_time": MOMENT,
        "revision": WHOLE,
        "update_time": MOMENT,
    },
    "task": {
        "id": WHOLE,
        "execution_id": WHOLE,
        "job_id": TEXT,
        "status": TEXT,
        "status_code": WHOLE,
        "status_revision": WHOLE,
        "status_message": TEXT,
        "run_count": WHOLE,
        "extra_attrs": JSON,
        "creation_time": MOMENT,
        "start_time": MOMENT,
        "update_time": MOMENT,
        "end_time": MOMENT,
        "vendor_type": TEXT,
    },
}
#: A table with fewer rows is read soon enough without the index.
MANY_TASKS = 10_000
INDEX = (
    "CREATE INDEX CONCURRENTLY task_execution_id_status_end_time ON {schema}.task (execution_id) "
    "INCLUDE (status, end_time);"
)
UPGRADE = "Attach to Harbor 2.9 or newer, and name its database in DATABASE_URL."


def setting(facts: Facts) -> Iterator[Problem]:
    if not is_attached():
        yield Problem(
            "REFRESH_ATTACH is not set, so this program would make tables of its own.",
            "Set REFRESH_ATTACH=harbor for this command, and later for every process.",
        )


def columns(facts: Facts) -> Iterator[Problem]:
    of_attached = cast("AttachFacts", facts)
    for right in of_attached.missing_rights:
        if right.name == "USAGE":
            yield Problem(f"{right.role} sees no table without the right USAGE on the schema public.", right.grant)
            return
    for name, needed in NEEDED.items():
        table = of_attached.harbors_tables[name]
        if table.schema is None:
            yield Problem(f"The database has no table {name}.", UPGRADE)
            continue
        if table.schema == SCHEMA or table.kind not in ("r", "p"):
            what = f"is in the schema {SCHEMA}" if table.schema == SCHEMA else "is a view and no table"
            yield Problem(f"{name} {what}, so it is not Harbor's.", UPGRADE)
            continue
        for column, accepted in needed.items():
            kind = table.columns.get(column)
            if kind is None:
                yield Problem(f"The table {name} has no column {column}.", UPGRADE)
            elif kind not in accepted:
                yield Problem(f"The column {name}.{column} is {kind}; it takes {' or '.join(accepted)}.", UPGRADE)


def covering_index(facts: Facts) -> Iterator[Problem]:
    size = cast("AttachFacts", facts).size
    if size is not None and not size.has_covering_index and not 0 <= size.tasks < MANY_TASKS:
        rows = f"{size.tasks:,} rows" if size.tasks >= 0 else "no statistics"
        yield warning(
            f"No index of task holds execution_id, status and end_time ({rows}, {size.bytes / 1024**2:,.0f} MiB), "
            "so a refresh reads the table beside it. With the index it reads that alone, up to twice as fast.",
            f"As the owner of the table, and outside a transaction: {proposal(size.schema)}",
        )


def proposal(schema: str) -> str:
    return INDEX.format(schema=schema)


def migrations(facts: Facts) -> Iterator[Problem]:
    """Before the first migration this is no error: it is the next step."""
    if facts.unapplied:
        yield warning(
            f"{len(facts.unapplied)} migrations are not applied, such as {facts.unapplied[0]}.",
            f"manage.py migrate (it makes tables in the schema {SCHEMA}, and touches none of Harbor's)",
        )


CHECKS = (
    Check("attach.setting", "REFRESH_ATTACH is harbor", setting),
    Check("attach.columns", "Harbor's tables have the columns", columns, (Need.DATABASE,)),
    Check("attach.index", "an index answers the rollup", covering_index, (Need.DATABASE,)),
)
OURS = (Check("attach.migrations", "our tables are there", migrations, (Need.DATABASE,)),)
