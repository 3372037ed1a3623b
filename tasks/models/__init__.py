"""The tables of the pipeline and of jobs. `TrackedExecution` has no table; it is a proxy of Execution."""

from harbor_refresh.tasks.models.job import Job, JobEnd, Need, Node
from harbor_refresh.tasks.models.state import Event, Pause, Sample, Watermark
from harbor_refresh.tasks.models.terms import Failure, Limit, LimitPace, Terms

# last, because its module imports the tables above
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution  # isort: skip
