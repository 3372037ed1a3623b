"""The tables of the page of the queue."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.safestring import SafeString

from harbor_refresh.executions.admin.formatters import NOTHING, execution_link, label
from harbor_refresh.executions.admin.site_pages import admin_url
from harbor_refresh.executions.durations import age, ago, duration
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.broker.celery_queues import TICKS
from harbor_refresh.tasks.jobs.limits import MOST_COUNTED, in_use
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.operations.pauses import known_queues, name_of, paused, what_of
from harbor_refresh.tasks.overview import of_broker
from harbor_refresh.tasks.overview.state import LATELY_SECONDS
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import execution_id
from harbor_refresh.tasks.queue.replies import Stats

MOST_WAITING = 20
#: The tables in their order, and how each is shown.
TABLES: Mapping[str, Mapping[str, Any]] = {
    "queues": {"title": "Queues of the broker"},
    "limits": {"title": "Limits of jobs"},
    "nodes": {"title": "Nodes", "height": 360},
    "waiting": {"title": "Executions that wait, the oldest first", "height": 360},
}


def queue_tables(*, may_change: bool) -> dict[str, Any]:
    """Return the tables by name, `numbers`, and `notes` of what is paused or away. With Redis away, there are no
    numbers, and the queues and the limits are the only tables."""
    known = paused()
    shown: dict[str, Any] = {"notes": [_told(one) for one in known.values()]}
    if found := in_use():
        shown["limits"] = _limits(found)
    is_away = False
    try:
        queue = execution_queue()
        look, waiting = queue.stats(), queue.oldest_waiting(MOST_WAITING)
        shown |= {
            "numbers": (
                ("Waiting", look.backlog, "executions on the queue"),
                ("In flight", look.in_flight, "claimed and not refreshed yet"),
                ("Failed before", look.failed_before, "of these two"),
                ("Live nodes", len(look.nodes), "worker processes"),
            ),
            "nodes": _nodes(look),
            "waiting": _waiting([(member, look.ago(since)) for member, since in waiting]),
        }
    except QueueUnavailable as exc:
        shown["notes"].insert(0, str(exc))
        is_away = True
    names = known_queues()
    shown["queues"] = _queues(names, _lengths(names, is_away=is_away), known, may_change=may_change)
    return shown


def _told(pause: Pause) -> str:
    reason = f": {pause.reason}" if pause.reason else ""
    return (
        f"{name_of(pause.queue)} was paused by {pause.by or '?'} {ago(pause.lasts.total_seconds())}{reason}. "
        "Its work waits until it is resumed."
    )


def _lengths(names: Sequence[str], *, is_away: bool) -> dict[str, int]:
    """Count the messages that wait; nothing if the broker is away, or is the Redis that was found away."""
    if is_away and of_broker.is_the_same_server():
        return {}
    try:
        return of_broker.messages(names)
    except QueueUnavailable:
        return {}


def _queues(
    names: Sequence[str], lengths: Mapping[str, int], known: Mapping[str, Pause], *, may_change: bool
) -> dict[str, Any]:
    return {
        "headers": ["Queue", "Work", "Messages that wait", "State", ""],
        "rows": [
            [
                name,
                what_of(name),
                f"{lengths[name]:,}" if name in lengths else NOTHING,
                _state(known.get(name)),
                _button("resume" if name in known else "pause", name) if may_change and name != TICKS else "",
            ]
            for name in names
        ],
    }


def _limits(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "headers": ["Task", "At once", "Rate", "Have a place", "Wait for the limit"],
        "rows": [
            [
                format_html(
                    '<a href="{}">{}</a>', admin_url("harbor_tasks_limit_change", one["name"]), one["name"]
                ),
                NOTHING if one["concurrency"] is None else f"{one['concurrency']:,}",
                one["rate"] or NOTHING,
                _at_least(one["admitted"]),
                _at_least(one["waiting"]),
            ]
            for one in found
        ],
    }


def _at_least(count: int) -> str:
    return f"{count:,}{'+' if count == MOST_COUNTED else ''}"


def _state(pause: Pause | None) -> SafeString:
    if pause is None:
        return label("Running", "success")
    return format_html(
        '<span class="inline-flex gap-2 items-center">{} for {}</span>',
        label("Paused", "warning"),
        duration(round(pause.lasts.total_seconds())),
    )


def _button(verb: str, target: object) -> SafeString:
    text = verb.capitalize()
    query = urlencode({"verb": verb, "target": target})
    return format_html('<a class="harbor-button" href="?{}" title="{} {}">{}</a>', query, text, target, text)


def _nodes(seen: Stats) -> dict[str, Any]:
    alive = [(name, label("alive", "success"), seen.ago(heard)) for name, heard in seen.signs]
    silent = [(name, label("silent", "danger"), seen.ago(heard)) for name, heard in seen.dead]
    lately = [row for row in silent if row[2] <= LATELY_SECONDS]
    return {
        "headers": ["Node", "State", "Last heartbeat"],
        "rows": [[name, state, ago(seconds)] for name, state, seconds in (*sorted(alive), *lately)],
    }


def _waiting(found: Sequence[tuple[str, float]]) -> dict[str, Any]:
    return {
        "headers": ["Execution", "Vendor", "Waits for"],
        "rows": [
            [execution_link(execution_id(member)), member.partition(":")[2], age(waited)]
            for member, waited in found
        ],
    }
