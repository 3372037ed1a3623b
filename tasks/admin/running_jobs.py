"""The jobs of one execution that run now, on its page: what each said last, as a bar if it gave numbers."""

from typing import Any

from harbor_refresh.executions.admin.formatters import NOTHING, task_link
from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.admin.job_formatters import check_in_bar, heard_at
from harbor_refresh.tasks.jobs.overview.running import running_jobs

MOST = 20


def running_table(execution_id: int) -> dict[str, Any]:
    try:
        found = running_jobs(execution_id, MOST)
    except QueueUnavailable as exc:
        return {"error": f"Redis is away, so this is unknown. {exc}"}
    rows = [
        [
            task_link(one.job.task_id),
            one.job.name,
            check_in_bar(one.seen, with_message=True) if one.seen else NOTHING,
            heard_at(one.seen) if one.seen else NOTHING,
        ]
        for one in found
    ]
    title = "Jobs that run now" if len(found) < MOST else f"Jobs that run now, the first {MOST}"
    return {"table": {"headers": ["Task", "Job", "Progress", "Last heard of"], "rows": rows}, "title": title}
