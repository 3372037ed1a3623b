"""The tables of the pipeline and of jobs. `TrackedExecution` has no table; it is a proxy of Execution."""

from executions.declarations import require_installed

# ruff: noqa: E402 - a model cannot be imported without its app, and Django's error does not say what to do
require_installed(__name__)

from tasks.models.event import Event
from tasks.models.job import Job
from tasks.models.job_end import JobEnd
from tasks.models.pause import Pause
from tasks.models.redis_memory import RedisMemory
from tasks.models.sample import Sample
from tasks.models.watermark import Watermark

# last, because its module imports the tables above
from tasks.jobs.execution import TrackedExecution  # isort: skip

__all__ = ["Event", "Job", "JobEnd", "Pause", "RedisMemory", "Sample", "TrackedExecution", "Watermark"]
