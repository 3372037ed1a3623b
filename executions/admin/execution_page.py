"""The parts of the page of one execution, tables of errors, and the screen of the history.

Every part reads a bounded number of rows.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.utils.text import Truncator

from harbor_refresh.executions.admin.formatters import (
    column,
    elapsed,
    held_label,
    link,
    list_url,
    moment,
    status_bar,
    status_label,
    table,
    task_labels,
    task_link,
    tasks_url,
)
from harbor_refresh.executions.admin.lists import ReadOnlyAdmin
from harbor_refresh.executions.admin.site_pages import page
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.queries.error_groups import Group, by_message, newest_errors
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.executions.text import duration

CHANGES, TASKS = 6, 20
#: Milliseconds between two questions of an open page. An ended execution may be tried again.
WHILE_GOING_MS, AFTER_THE_END_MS = 2_000, 15_000


def panel(execution: Any) -> dict[str, Any]:
    """What changes while the execution makes progress. The time that it takes comes after its end: before, each
    answer would differ from the last one."""
    made, quarantine = execution.made, getattr(execution, "quarantine", None)
    has_ended = is_final(execution.status)
    context = {
        "made": made,
        "status": status_label(execution.status),
        "held": held_label(execution),
        "text": _text(made),
        "took": elapsed(execution.start_time, execution.end_time) if has_ended else "",
        "bar": status_bar(made.counts),
        "counts": task_labels(execution.pk, made.counts),
        "tasks_url": tasks_url(execution.pk),
        "errors": _errors(execution.pk) if made.counts.get(Status.ERROR) else {},
        "changes": _changes(execution),
        "history_url": list_url("executions_statuschange", q=execution.pk),
        "quarantine": quarantine,
        "quarantined_at": moment(quarantine.at) if quarantine else "",
    }
    return {
        "parts": {"panel": render_to_string("executions/admin/execution_panel.html", context)},
        "every": AFTER_THE_END_MS if has_ended else WHILE_GOING_MS,
    }


def _text(made: Progress) -> str:
    if not made.total:
        return "It has no tasks: its status is set by hand."
    tasks = "task has" if made.total == 1 else "tasks have"
    text = f"{made.done:,} of {made.total:,} {tasks} ended"
    if failed := made.counts.get(Status.ERROR):
        text += f", {failed:,} with an error"
    if stopped := made.counts.get(Status.STOPPED):
        text += f", {stopped:,} stopped"
    left = f" About {duration(round(made.eta.total_seconds()))} left." if made.eta else ""
    return f"{text}.{left}"


def _errors(execution_id: int) -> dict[str, Any]:
    newest, bound = newest_errors(execution_id=execution_id)
    return error_table("Errors by message", "Message", by_message(newest), height=300, footer=bound)


def _changes(execution: Execution) -> list[dict[str, Any]]:
    """The last changes of its status, the newest first, and how long each status lasted."""
    rows = list(StatusChange.objects.filter(execution_id=execution.pk).order_by("-revision")[:CHANGES])
    return [
        {
            "when": moment(row.at),
            "was": status_label(row.from_status),
            "became": status_label(row.to_status),
            "lasted": elapsed(row.at, later.at) if later else "",
        }
        for later, row in zip([None, *rows], rows, strict=False)
    ]


def first_tasks(execution: Execution, tasks: QuerySet[Task], job: Callable[[Task], Any]) -> dict[str, Any]:
    """The first of its tasks, unfinished ones first, which is the order of the index task_rollup."""
    cells = (
        [
            task_link(task.pk),
            status_label(task.status),
            job(task),
            moment(task.start_time),
            elapsed(task.start_time, task.end_time),
            Truncator(task.status_message).chars(80),
        ]
        for task in tasks.defer("extra_attrs").order_by("status_code", "-pk")[:TASKS]
    )
    headers = ["Task", "Status", "Job", "Started", "Took", "Message"]
    footer = link(tasks_url(execution.pk), "All its tasks")
    return table("Its tasks, unfinished ones first", headers, cells, footer=footer)


def error_table(title: str, by: str, groups: Sequence[Group], **more: Any) -> dict[str, Any]:
    def cells(one: Group) -> list[Any]:
        known = moment(one.key) if isinstance(one.key, datetime) else Truncator(one.key).chars(160)
        return [known or "(no message)", f"{one.count:,}", moment(one.last_end), task_link(one.task_id)]

    return table(title, [by, "Errors", "Last", "Newest task"], map(cells, groups), **more)


@page(StatusChange)
class StatusChangeAdmin(ReadOnlyAdmin):
    list_display = ("id", "execution_number", "revision", "was", "became", "when")
    fields = ("execution_number", "revision", "was", "became", "when")
    search_fields = ("execution_id",)
    search_help_text = "Execution id"

    when = column("at", "When")
