"""Executions of jobs as their rows say them, without tasks of Celery's."""

from collections.abc import Iterable
from typing import Any

from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs.starting.declarations import Part
from harbor_refresh.tasks.jobs.starting.fairness import Turns
from harbor_refresh.tasks.jobs.starting.job_rows import start_or_find


def start(vendor_type: str, parts: Iterable[Part], turns: Turns | None = None, **attributes: Any) -> Execution:
    return start_or_find(NewExecution(vendor_type, **attributes), parts, turns)[0]
