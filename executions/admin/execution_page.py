"""What the page of one execution shows beside its fields: the panel, which follows it live, and the sections with
its tasks, the messages of its errors, and its deliveries. Every part reads a bounded number of rows."""

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from harbor_refresh.executions.admin.error_groups import error_table
from harbor_refresh.executions.admin.formatters import (
    delivery_label,
    elapsed,
    held_label,
    moment,
    quarantine_url,
    status_bar,
    status_label,
    task_labels,
    task_link,
    tasks_url,
)
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.durations import duration
from harbor_refresh.executions.models import Delivery, Execution, StatusChange, Subscription, Task
from harbor_refresh.executions.queries.progress import Progress
from harbor_refresh.executions.status import Status, is_final

CHANGES = 6
TASKS = 20
DELIVERIES = 10
MAX_SUBSCRIPTIONS = 1_000
#: Milliseconds between two questions of an open page. An ended execution may be tried again.
WHILE_GOING_MS, AFTER_THE_END_MS = 2_000, 15_000


def panel_context(execution: Any) -> dict[str, Any]:
    """What changes while the execution makes progress. The time that it takes comes after its end: before, each
    answer would differ from the last one."""
    execution_id, made = execution.pk, execution.made
    quarantine = getattr(execution, "quarantine", None)
    has_ended = is_final(execution.status)
    return {
        "panel_url": admin_url("harbor_executions_execution_panel", execution_id),
        "panel_every": AFTER_THE_END_MS if has_ended else WHILE_GOING_MS,
        "panel_status": status_label(execution.status),
        "panel_bar": status_bar(made.counts),
        "panel_text": _text(made),
        "panel_counts": task_labels(execution_id, made.counts) if made.counts else "",
        "panel_tasks_url": tasks_url(execution_id) if made.counts else "",
        "panel_total": made.total,
        "panel_took": elapsed(execution.start_time, execution.end_time) if has_ended else "",
        "panel_held": held_label(execution),
        "panel_changes": _changes(execution),
        "panel_history_url": admin_url("harbor_executions_statuschange_changelist") + f"?q={execution_id}",
        "panel_quarantine": quarantine,
        "panel_quarantined_at": moment(quarantine.at) if quarantine else "",
        "panel_quarantine_url": quarantine_url(execution_id),
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


def _changes(execution: Execution) -> list[dict[str, Any]]:
    """The last changes of its status, the newest first, and how long each status lasted."""
    rows = list(StatusChange.objects.filter(execution_id=execution.pk).order_by("-revision")[:CHANGES])
    until = [None if not is_final(execution.status) else rows[0].at if rows else None, *(row.at for row in rows)]
    return [
        {
            "when": moment(row.at),
            "was": status_label(row.from_status),
            "became": status_label(row.to_status),
            "lasted": "" if index == 0 else elapsed(row.at, until[index]),
        }
        for index, row in enumerate(rows)
    ]


def sections_context(execution: Any) -> dict[str, Any]:
    return {
        "its_tasks": _tasks(execution),
        "its_tasks_link": _link("All its tasks", tasks_url(execution.pk)),
        "its_errors": error_table(execution_id=execution.pk) if execution.made.counts.get(Status.ERROR) else None,
        "its_deliveries": _deliveries(execution),
        "its_deliveries_link": _link(
            "All its deliveries", f"{admin_url('harbor_executions_delivery_changelist')}?q={execution.pk}"
        ),
    }


def _link(text: str, url: str) -> SafeString:
    return format_html('<a class="text-link" href="{}">{}</a>', url, text)


def _tasks(execution: Execution) -> dict[str, Any]:
    """Its first tasks, unfinished ones first, which is the order of the index task_rollup."""
    rows = Task.objects.defer("extra_attrs").filter(execution_id=execution.pk).order_by("status_code", "-pk")
    return {
        "headers": ["Task", "Status", "Job id", "Started", "Took", "Message"],
        "rows": [
            [
                task_link(task.pk),
                status_label(task.status),
                task.job_id or "-",
                moment(task.start_time),
                elapsed(task.start_time, task.end_time),
                Truncator(task.status_message).chars(80),
            ]
            for task in rows[:TASKS]
        ],
    }


def _deliveries(execution: Execution) -> dict[str, Any] | None:
    """Its last deliveries; None if there are none. The index begins with the subscription, so each is asked."""
    subscriptions = Subscription.objects.values("pk")[:MAX_SUBSCRIPTIONS]
    rows = Delivery.objects.filter(subscription_id__in=subscriptions, execution_id=execution.pk)
    found = list(rows.select_related("subscription").order_by("-revision", "-pk")[:DELIVERIES])
    if not found:
        return None
    return {
        "headers": ["Subscription", "Change", "State", "Attempts", "Last error"],
        "rows": [
            [
                row.subscription.name,
                f"{row.from_status} → {row.to_status}, revision {row.revision}",
                delivery_label(row.state),
                row.attempts,
                Truncator(row.last_error).chars(80) or "-",
            ]
            for row in found
        ],
    }
