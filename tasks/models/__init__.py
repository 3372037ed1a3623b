"""The tables of the pipeline and of jobs. `TrackedExecution` has none: it is the row that `executions` has."""

from tasks.models.job import Job
from tasks.models.redis_memory import RedisMemory
from tasks.models.watermark import Watermark

# last: what a tracked execution does needs the tables above
from tasks.jobs.execution import TrackedExecution  # isort: skip

__all__ = ["Job", "RedisMemory", "TrackedExecution", "Watermark"]
