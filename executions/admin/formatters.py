"""Render a status, a moment and a duration, in the same way on every screen."""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from executions.models import Execution
from executions.status import Status

COLOURS: dict[str, str] = {
    Status.PENDING: "default",
    Status.SCHEDULED: "primary",
    Status.RUNNING: "info",
    Status.STOPPED: "warning",
    Status.ERROR: "danger",
    Status.SUCCESS: "success",
}
NOTHING = "-"
#: The parameter that narrows the list of jobs to those of one execution.
JOB_EXECUTION_PARAMETER = "task__execution__id__exact"
UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def label(text: str, colour: str, *, href: str = "", title: str = "") -> SafeString:
    return render_to_string(
        "unfold/helpers/label.html",
        {"text": text, "type": colour, "href": href, "label_title": title},
    )


def status_label(status: str, *, count: int | None = None, href: str = "", title: str = "") -> SafeString:
    """The label of a status in its colour; `count` is shown before it."""
    text = status if count is None else f"{count:,} {status}"
    return label(text, COLOURS[status], href=href, title=title)


def task_labels(execution_id: int, counts: Mapping[str, int]) -> SafeString:
    """A label for each status, with the count of its tasks and a link to them."""
    return format_html(
        '<span class="inline-flex flex-wrap gap-1" style="min-width: 17.5rem">{}</span>',
        format_html_join(
            "",
            "{}",
            (
                (
                    status_label(
                        status,
                        count=counts[status],
                        href=tasks_url(execution_id, status),
                        title=f"Show the tasks of execution {execution_id} that are {status}",
                    ),
                )
                for status in Status.values
                if counts.get(status)
            ),
        ),
    )


def tasks_url(execution_id: int, status: str = "") -> str:
    query = {"execution__id__exact": execution_id} | ({"status__exact": status} if status else {})
    return f"{reverse('admin:harbor_executions_task_changelist')}?{urlencode(query)}"


def task_url(task_id: int) -> str:
    return reverse("admin:harbor_executions_task_change", args=[task_id])


def task_link(task_id: int) -> SafeString:
    return format_html('<a href="{}" class="text-link">{}</a>', task_url(task_id), task_id)


def execution_link(execution_id: int) -> SafeString:
    url = reverse("admin:harbor_executions_execution_change", args=[execution_id])
    return format_html('<a href="{}" class="text-link">{}</a>', url, execution_id)


def is_quarantined(execution: Execution) -> bool:
    return hasattr(execution, "quarantine")


def moment(at: datetime | None) -> str | SafeString:
    if at is None:
        return NOTHING
    local = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" class="whitespace-nowrap">{}</time>',
        at.isoformat(),
        local.strftime("%Y-%m-%d %H:%M:%S"),
    )


def elapsed(begin: datetime | None, end: datetime | None) -> str | SafeString:
    """The time from begin to end, or until now if there is no end yet."""
    if begin is None:
        return NOTHING
    seconds = max(0, round(((end or timezone.now()) - begin).total_seconds()))
    so_far = "" if end else " so far"
    return format_html('<span class="whitespace-nowrap">{}{}</span>', duration(seconds), so_far)


def bar(share: float) -> SafeString:
    """A progress bar for a share from 0 to 1."""
    return format_html(
        '<span class="bg-base-200 dark:bg-base-700 rounded-default overflow-hidden" style="width: 12rem">'
        '<span class="block h-1.5 bg-primary-600 dark:bg-primary-500" style="width: {}%"></span></span>',
        f"{share * 100:.1f}",
    )


def duration(seconds: int) -> str:
    """The duration in its two largest units: `3 d 4 h`, `2 min 5 s`."""
    for large, its_unit, small, next_unit in UNITS:
        if seconds >= large:
            first, second = seconds // large, seconds % large // small
            return f"{first} {its_unit} {second} {next_unit}" if second else f"{first} {its_unit}"
    return f"{seconds} s"
