"""Checks of `manage.py attach check`: Harbor's tables as they must be, our schema, the marks and the statuses. The
doctor's checks that a Harbor must meet have Shown.ATTACH in tasks/checks; those of rights are in rights.py.

They run before the first migration as well, so they ask for no table of ours.
"""

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error, Warning

from harbor_refresh.attach.facts import AttachFacts
from harbor_refresh.executions.attached.attachment import SCHEMA, is_attached
from harbor_refresh.executions.management.output import Failed
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.registry import Need, Shown, check
from harbor_refresh.tasks.queue.keys import HARBORS_SET

WHOLE = ("integer", "bigint")
TEXT = ("character varying", "text")
JSON = ("json", "jsonb")
MOMENT = ("timestamp without time zone", "timestamp with time zone")

#: The columns that this service reads or writes, by the types it can use. Harbor 2.9 and newer have them all.
NEEDED = {
    "execution": {
        WHOLE: "id vendor_id revision",
        TEXT: "vendor_type status status_message trigger",
        JSON: "extra_attrs",
        MOMENT: "start_time end_time update_time",
    },
    "task": {
        WHOLE: "id execution_id status_code status_revision run_count",
        TEXT: "job_id status status_message vendor_type",
        JSON: "extra_attrs",
        MOMENT: "creation_time start_time update_time end_time",
    },
}
#: A table with fewer rows is read soon enough without the index.
MANY_TASKS = 10_000
UPGRADE = "Attach to Harbor 2.9 or newer, and name its database in DATABASE_URL."


@check("attach.setting", "REFRESH_ATTACH is harbor", shown=(Shown.ATTACH,))
def setting(facts: AttachFacts) -> Iterator[CheckMessage]:
    if not is_attached():
        yield Error(
            "REFRESH_ATTACH is not set, so this program would make tables of its own.",
            "Set REFRESH_ATTACH=harbor for this command, and later for every process.",
        )


@check("attach.columns", "Harbor's tables have all needed columns", Need.DATABASE, shown=(Shown.ATTACH,))
def columns(facts: AttachFacts) -> Iterator[CheckMessage]:
    for right in facts.missing_rights:
        if right.name == "USAGE":
            yield Error(f"{right.role} sees no table without the right USAGE on the schema public.", right.grant)
            return
    for name, needed in NEEDED.items():
        table = facts.harbors_tables[name]
        if table.schema is None:
            yield Error(f"The database has no table {name}.", UPGRADE)
            continue
        if table.schema == SCHEMA or table.kind not in ("r", "p"):
            what = f"is in the schema {SCHEMA}" if table.schema == SCHEMA else "is a view, not a table"
            yield Error(f"{name} {what}, so it is not Harbor's.", UPGRADE)
            continue
        for column, accepted in ((one, kinds) for kinds, names in needed.items() for one in names.split()):
            kind = table.columns.get(column)
            if kind is None:
                yield Error(f"The table {name} has no column {column}.", UPGRADE)
            elif kind not in accepted:
                yield Error(f"The column {name}.{column} is {kind}; it takes {' or '.join(accepted)}.", UPGRADE)


@check("attach.index", "an index covers the rollup", Need.DATABASE, shown=(Shown.ATTACH,))
def covering_index(facts: AttachFacts) -> Iterator[CheckMessage]:
    size = facts.size
    if size is not None and not size.has_covering_index and not 0 <= size.tasks < MANY_TASKS:
        rows = f"{size.tasks:,} rows" if size.tasks >= 0 else "no statistics"
        yield Warning(
            f"The table task ({rows}, {size.bytes / 1024**2:,.0f} MiB) has no index with execution_id, status and "
            "end_time, so a refresh also reads the table. With such an index it reads only the index, up to twice "
            "as fast.",
            f"As the owner of the table, and outside a transaction: {proposal(size.schema)}",
        )


def proposal(schema: str) -> str:
    return (
        f"CREATE INDEX CONCURRENTLY task_execution_id_status_end_time ON {schema}.task (execution_id) "
        "INCLUDE (status, end_time);"
    )


@check("attach.migrations", "our tables exist", Need.DATABASE, shown=(Shown.ATTACH,))
def migrations(facts: AttachFacts) -> Iterator[CheckMessage]:
    """Before the first migration this is no error: it is the next step."""
    if facts.unapplied:
        yield Warning(
            f"{len(facts.unapplied)} migrations are not applied, such as {facts.unapplied[0]}.",
            f"manage.py migrate (it makes tables in the schema {SCHEMA}, and touches none of Harbor's)",
        )


@check("attach.marks", "Redis is Harbor's", Need.REDIS, shown=(Shown.ATTACH,))
def marks(facts: AttachFacts) -> Iterator[CheckMessage]:
    with facts.redis.asked() as client:
        kind = client.type(HARBORS_SET).decode()
    if kind not in ("set", "none"):
        yield Error(
            f"The key {HARBORS_SET} is a {kind} and not a set, so this is not Harbor's Redis database.",
            "Name the database of _REDIS_URL_HARBOR, or if that is empty of _REDIS_URL_CORE, in REDIS_URL.",
        )


@check("attach.statuses", "each status follows from its tasks", Need.DATABASE, shown=(Shown.ATTACH,))
def statuses(facts: AttachFacts) -> Iterator[CheckMessage]:
    if any(columns(facts)):
        return
    found = facts.wrong
    if found.wrong:
        which = ", ".join(str(one.execution_id) for one in found.first_wrong[:3])
        differ = plural(found.wrong, "execution has a status or an end", "executions have a status or an end")
        yield Warning(
            f"{differ} that does not follow from the tasks, such as {which}. This includes executions that were "
            "marked a moment ago.",
            "manage.py attach repair",
        )


@check("attach.dead_tasks", "each unfinished task has a job", Need.DATABASE, shown=(Shown.ATTACH,))
def dead_tasks(facts: AttachFacts) -> Iterator[CheckMessage]:
    if any(columns(facts)):
        return
    try:
        found = facts.dead
    except Failed as exc:
        yield Error(str(exc), "manage.py attach check --job-service-redis URL")
        return
    if found is not None and found.dead:
        which = ", ".join(str(one.task_id) for one in found.examples[:3])
        yield Warning(
            f"{plural(found.dead, 'task has', 'tasks have')} no job left, such as {which}, so the execution "
            "stays Running and its policy cannot be deleted.",
            "manage.py attach repair --dead-tasks --dry-run, then without --dry-run",
        )
