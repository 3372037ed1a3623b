"""Render a status, a moment and a duration, in the same way on every screen, and make columns of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import duration

COLOURS: dict[str, str] = {
    Status.PENDING: "default",
    Status.SCHEDULED: "primary",
    Status.RUNNING: "info",
    Status.STOPPED: "warning",
    Status.ERROR: "danger",
    Status.SUCCESS: "success",
}
#: The parts of a progress bar, in this order. static/executions/parts.css colours them.
BAR = (Status.SUCCESS, Status.STOPPED, Status.ERROR, Status.RUNNING)
NOTHING = "-"
#: The parameter that narrows a list to a status.
STATUS_PARAMETER = "status__exact"
#: The parameters that narrow the list of tasks, and that of jobs, to those of one execution.
TASK_EXECUTION_PARAMETER = "execution__id__exact"
JOB_EXECUTION_PARAMETER = "task__execution__id__exact"


def column(
    field: str | Callable[[Any], Any],
    description: str,
    show: Callable[[Any], Any] | None = None,
    *,
    ordering: str | None = None,
) -> Callable[[Any, Any], Any]:
    """A column of a list or a field of a page: this field of the row, as `show` renders it; without `show` it is a
    moment. Dots lead to other rows. What a function returns needs no `show`."""
    read = field if callable(field) else attrgetter(field)
    render = show or (None if callable(field) else moment)

    @admin.display(description=description, ordering=ordering)
    def shown(_: Any, row: Any) -> Any:
        value = read(row)
        return render(value) if render else value

    return shown


def once(name: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Read it once for a row, which keeps it by this name: a page asks each field several times."""
    return lambda row: row.__dict__[name] if name in row.__dict__ else row.__dict__.setdefault(name, read(row))


def label(text: str, colour: str, *, href: str = "", title: str = "") -> SafeString:
    return format_html(
        '<{tag} class="harbor-label harbor-label-{colour}"{href}{title}>{text}</{tag}>',
        tag="a" if href else "span",
        colour=colour,
        href=format_html(' href="{}"', href) if href else "",
        title=format_html(' title="{}"', title) if title else "",
        text=text,
    )


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[Any]], **more: Any) -> dict[str, Any]:
    """What table.html shows. `more`: the `footer`, and the `height` in pixels above which it scrolls."""
    return {"title": title, "headers": headers, "rows": list(rows), **more}


def status_label(status: str) -> SafeString:
    return label(status or "no status", COLOURS.get(status, "default"))


def task_labels(execution_id: int, counts: Mapping[str, int]) -> SafeString:
    labels = (
        label(
            f"{counts[status]:,} {status}",
            COLOURS[status],
            href=tasks_url(execution_id, status),
            title=f"Show the tasks of execution {execution_id} that are {status}",
        )
        for status in Status.values
        if counts.get(status)
    )
    labelled = format_html_join("", "{}", ((one,) for one in labels))
    return format_html('<span class="inline-flex flex-wrap gap-1" style="min-width: 14rem">{}</span>', labelled)


def list_url(name: str, **query: Any) -> str:
    return f"{admin_url(f'harbor_{name}_changelist')}?{urlencode(query)}"


def tasks_url(execution_id: int, status: str = "") -> str:
    of_status = {STATUS_PARAMETER: status} if status else {}
    return list_url("executions_task", **{TASK_EXECUTION_PARAMETER: execution_id}, **of_status)


def task_url(task_id: int) -> str:
    return admin_url("harbor_executions_task_change", task_id)


def link(url: str, text: Any) -> SafeString:
    return format_html('<a href="{}" class="text-link">{}</a>', url, text)


def task_link(task_id: int) -> SafeString:
    return link(task_url(task_id), task_id)


def execution_link(execution_id: int) -> SafeString:
    return link(admin_url("harbor_executions_execution_change", execution_id), execution_id)


def held_label(execution: Execution) -> SafeString | str:
    if not hasattr(execution, "quarantine"):
        return ""
    return label("Quarantined", "danger", title=execution.quarantine.reason)


def moment(at: datetime | None) -> str | SafeString:
    """A moment, whose time stands below its date where the place is narrow."""
    if at is None:
        return NOTHING
    # a project with USE_TZ = False has local times without a zone
    local = timezone.localtime(at) if timezone.is_aware(at) else at
    return format_html(
        '<time datetime="{}"><span class="whitespace-nowrap">{}</span> '
        '<span class="whitespace-nowrap">{}</span></time>',
        at.isoformat(),
        local.strftime("%Y-%m-%d"),
        local.strftime("%H:%M:%S %Z"),
    )


def name_in_column(name: str) -> SafeString:
    """A name such as GARBAGE_COLLECTION, which a narrow column may break after an underscore."""
    return format_html_join(SafeString("_<wbr>"), "{}", ((part,) for part in name.split("_")))


def elapsed(begin: datetime | None, end: datetime | None) -> str | SafeString:
    """The time from begin to end, or until now if there is no end yet."""
    if begin is None:
        return NOTHING
    seconds = max(0, round(((end or timezone.now()) - begin).total_seconds()))
    so_far = "" if end else " so far"
    return format_html('<span><span class="whitespace-nowrap">{}</span>{}</span>', duration(seconds), so_far)


def status_bar(counts: Mapping[str, int]) -> SafeString | str:
    """A progress bar with a part for each final status, and a hatched one for what runs. The rest is empty."""
    total = sum(counts.values())
    if not total:
        return ""
    shares = ((status, f"{counts[status] / total * 100:.2f}") for status in BAR if counts.get(status))
    parts = format_html_join(
        "",
        '<div class="harbor-{}" title="{}: {}%" style="width: {}%"></div>',
        ((status.lower(), status, share, share) for status, share in shares),
    )
    return format_html('<div class="harbor-progress">{}</div>', parts)
