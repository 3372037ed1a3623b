"""{% execution_progress execution %}: the progress of an execution in a template of a host."""

from typing import Any

from django import template

from harbor_refresh.executions.errors import NoSuchExecution
from harbor_refresh.executions.queries.progress import progress
from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.executions.text import duration, is_whole

register = template.Library()


@register.inclusion_tag("executions/progress.html")
def execution_progress(execution: Any, events: str = "") -> dict[str, Any]:
    """Show a bar, the status and the counts, as they are when the page is made: one indexed query. With `events`,
    the address of its events (host_views.py), a script keeps them true. `execution`: the row, or its id. Show
    nothing for None, or a name that the template does not know: the page of a host is more than its bar."""
    execution_id = getattr(execution, "pk", execution)
    if not is_whole(execution_id, 1, MAX_ID):
        return {}
    try:
        now = progress(execution_id)
    except NoSuchExecution:
        return {"id": execution_id}
    return {
        "id": execution_id,
        "now": now,
        "left": duration(round(now.eta.total_seconds())) if now.eta else "",
        "events": events,
    }
