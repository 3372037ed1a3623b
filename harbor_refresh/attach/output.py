"""What `manage.py attach` prints beside the problems of the checks."""

from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from harbor_refresh.attach.dead_tasks import DeadTasks
from harbor_refresh.attach.facts import AttachFacts
from harbor_refresh.attach.wrong_statuses import Findings
from harbor_refresh.executions.management.output import table


def known(facts: AttachFacts) -> tuple[dict[str, Any], list[Any]]:
    """What the checks have read, as data and for people. A fact that no check could read is null."""
    wrong: Findings | None = facts.__dict__.get("wrong")
    dead: DeadTasks | None = facts.__dict__.get("dead")
    shown: list[Any] = []
    if wrong is not None:
        shown.append(
            f"Looked at {wrong.looked_at:,} executions: {wrong.unfinished:,} have not ended, {wrong.wrong:,} are "
            f"wrong, {wrong.given_up:,} with waiting tasks were given up by Harbor's sweep and are left."
        )
        shown += examples(wrong)
    if dead is not None:
        shown += dead_text(dead)
    return {"executions": wrong and asdict(wrong), "dead_tasks": dead and asdict(dead)}, shown


def dead_text(found: DeadTasks) -> list[Any]:
    rows = [
        (str(one.task_id), str(one.execution_id), one.vendor_type, one.stored, one.status, one.reason)
        for one in found.examples
    ]
    return [
        f"Looked at {found.looked_at:,} tasks: {found.unfinished:,} with a job have not ended, "
        "and have not changed for an hour.",
        *_first(("task", "execution", "vendor", "stored", "true", "why"), rows, found.dead),
    ]


def examples(found: Findings) -> list[Any]:
    rows = [tuple(str(value or "none") for value in astuple(one)) for one in found.first_wrong]
    return _first(("execution", "vendor", "stored", "its end", "true", "its end"), rows, found.wrong)


def _first(columns: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> list[Any]:
    """The table of the first rows, if there are any, and how many more there are."""
    more = [f"… and {total - len(rows):,} more."] if total > len(rows) else []
    return [table(columns, rows), *more] if rows else []
