"""Every check of `manage.py attach check`, in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from harbor_refresh.attach import broker_rights, rights, schema
from harbor_refresh.doctor import postgres, redis_servers
from harbor_refresh.doctor.check import Check, Problem, warning
from harbor_refresh.doctor.facts import Facts, Need
from harbor_refresh.executions.management.output import Failed
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.queue.keys import HARBORS_SET

if TYPE_CHECKING:
    from harbor_refresh.attach.facts import AttachFacts


def marks(facts: Facts) -> Iterator[Problem]:
    found = cast("AttachFacts", facts).marks
    if found.set_type not in ("set", "none"):
        yield Problem(
            f"The key {HARBORS_SET} is a {found.set_type} and not a set, so this is not Harbor's Redis database.",
            "Name the database of _REDIS_URL_HARBOR, or if that is empty of _REDIS_URL_CORE, in REDIS_URL.",
        )


def statuses(facts: Facts) -> Iterator[Problem]:
    if any(schema.columns(facts)):
        return
    found = cast("AttachFacts", facts).wrong
    if found.wrong:
        which = ", ".join(str(one.execution_id) for one in found.examples[:3])
        differ = plural(found.wrong, "execution has a status or an end", "executions have a status or an end")
        yield warning(
            f"{differ} that its tasks do not say, such as {which}. Those that were marked a moment ago are among "
            "them.",
            "manage.py attach repair",
        )


def dead_tasks(facts: Facts) -> Iterator[Problem]:
    if any(schema.columns(facts)):
        return
    try:
        found = cast("AttachFacts", facts).dead
    except Failed as exc:
        yield Problem(str(exc), "manage.py attach check --job-service-redis URL")
        return
    if found is not None and found.dead:
        which = ", ".join(str(one.task_id) for one in found.examples[:3])
        yield warning(
            f"{plural(found.dead, 'task has', 'tasks have')} no job that will end it, such as {which}; so the "
            "execution runs, and its policy cannot be deleted.",
            "manage.py attach repair --dead-tasks --dry-run, then without --dry-run",
        )


#: Of the doctor, those that a Harbor must meet.
_OF_POSTGRES = tuple(one for one in postgres.CHECKS if one.name in ("database.version", "database.writable"))
_REACHABLE = tuple(one for one in postgres.CHECKS if one.name == "database.reachable")
_OF_REDIS = tuple(
    one
    for one in redis_servers.CHECKS
    if one.name in ("redis.reachable", "broker.reachable", "redis.primary", "redis.version", "redis.eviction")
)

CHECKS: tuple[Check, ...] = (
    *_REACHABLE,
    *_OF_POSTGRES,
    *schema.CHECKS,
    *rights.CHECKS,
    *schema.OURS,
    *_OF_REDIS,
    *rights.OF_REDIS,
    *broker_rights.CHECKS,
    Check("attach.marks", "Redis is Harbor's", marks, (Need.REDIS,)),
    Check("attach.statuses", "each status is what its tasks say", statuses, (Need.DATABASE,)),
    Check("attach.dead_tasks", "each unfinished task has a job", dead_tasks, (Need.DATABASE,)),
)
