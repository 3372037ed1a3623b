"""The page of errors, and the errors of one execution: how often each message, vendor and hour came."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import Truncator

from harbor_refresh.executions.admin.formatters import execution_link, moment, task_link
from harbor_refresh.executions.queries.error_groups import COMPARED, Group, group_errors

#: The choices of the page, and what each means in hours.
SINCE = {"hour": ("Last hour", 1), "day": ("Last day", 24), "week": ("Last week", 168), "": ("All", None)}
NO_MESSAGE = "(no message)"


def error_table(execution_id: int) -> dict[str, Any] | None:
    found = group_errors(execution_id=execution_id)
    return _table("Message", found.messages, with_execution=False) if found.messages else None


def page_context(request: HttpRequest) -> dict[str, Any]:
    chosen = request.GET.get("since", "day")
    hours = SINCE.get(chosen, SINCE["day"])[1]
    found = group_errors(since=timezone.now() - timedelta(hours=hours) if hours else None)
    return {
        "choices": [
            {"name": title, "query": f"?since={name}", "chosen": name == chosen}
            for name, (title, _) in SINCE.items()
        ],
        "bound": f"The errors of the newest {COMPARED:,} tasks that failed." if found.is_capped else "",
        "messages_table": _table("Message", found.messages),
        "vendors_table": _table("Vendor", found.vendors),
        "hours_table": _table("Hour", found.hours),
        "is_empty": not found.messages,
    }


def _table(title: str, groups: Sequence[Group], *, with_execution: bool = True) -> dict[str, Any]:
    of_execution = ["Execution"] if with_execution else []
    return {
        "headers": [title, "Errors", "Last", "Newest task", *of_execution],
        "rows": [
            [
                moment(group.key)
                if isinstance(group.key, datetime)
                else Truncator(group.key).chars(160) or NO_MESSAGE,
                f"{group.count:,}",
                moment(group.last_end),
                task_link(group.task_id),
                *([execution_link(group.execution_id)] if with_execution else []),
            ]
            for group in groups
        ],
    }
