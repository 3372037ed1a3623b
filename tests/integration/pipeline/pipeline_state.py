"""Executions in the pipeline: their marks, their signals and failures, and the watermark."""

from datetime import datetime
from typing import Any

from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.models import Watermark
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import AGES_AGO


def names(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [name for name, _ in told]


def member(execution: Execution) -> str:
    return f"{execution.pk}:{execution.vendor_type}"


def marked(redis: Redis) -> set[str]:
    found: set[str] = whole_redis(redis).get("queue:v2", set())
    return found


def watermark() -> datetime:
    return Watermark.objects.get().settled_before or AGES_AGO
