"""What `manage.py attach` prints beside the problems of the checks."""

from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any, cast

from harbor_refresh.attach.dead_tasks import DeadTasks
from harbor_refresh.attach.facts import AttachFacts, Marks
from harbor_refresh.attach.wrong_statuses import Findings
from harbor_refresh.executions.management.output import table
from harbor_refresh.tasks.queue.keys import HARBORS_SET


def known(facts: AttachFacts) -> tuple[dict[str, Any], list[Any]]:
    """What the checks have read, as data and for people. A fact that no check could read is null."""
    read = [facts.__dict__.get(name) for name in ("marks", "wrong", "dead")]
    marks, wrong, dead = cast("tuple[Marks | None, Findings | None, DeadTasks | None]", tuple(read))
    data: dict[str, Any] = dict.fromkeys(("marks", "executions", "dead_tasks", "would_refresh"))
    shown: list[Any] = []
    if marks is not None:
        data["marks"] = {**asdict(marks), "total": marks.total}
        more = "" if marks.is_complete else " (and perhaps more: the rest of Redis was not looked at)"
        shown.append(
            f"Redis holds {marks.in_set:,} marks in the set {HARBORS_SET}, {marks.with_cache:,} keys with "
            f"`cache:` and {marks.without_cache:,} without{more}."
        )
    if wrong is not None:
        data["executions"] = asdict(wrong)
        shown.append(
            f"Looked at {wrong.looked_at:,} executions: {wrong.unfinished:,} have not ended, {wrong.wrong:,} are "
            f"wrong, {wrong.given_up:,} with waiting tasks were given up by Harbor's sweep and are left."
        )
        shown += examples(wrong)
    if marks is not None and wrong is not None:
        data["would_refresh"] = marks.total + wrong.wrong
        shown.append(
            f"The first ticks would refresh at most {marks.total:,} marked executions, and a repair "
            f"{wrong.wrong:,} wrong ones."
        )
    if dead is not None:
        data["dead_tasks"] = asdict(dead)
        shown += dead_text(dead)
    return data, shown


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
