"""The condition that an execution has jobs, for its page and the buttons of the admin."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.lookups import IsNull

from harbor_refresh.executions.models import Execution, Link
from harbor_refresh.tasks.models.job import Job


def has_jobs() -> Q:
    """The condition on executions that one of their tasks has a job, or that they have children, whose jobs are
    stopped and tried again with them. For each execution its tasks are looked at until one has a job: as a join,
    PostgreSQL may read all jobs and all tasks for a few executions."""
    first = Job.objects.filter(task__execution_id=OuterRef("pk")).values("pk")[:1]
    return Q(IsNull(Subquery(first), False)) | Q(Exists(Link.objects.filter(parent=OuterRef("pk"))))


def executions_with_jobs(execution_ids: Sequence[int]) -> list[int]:
    """Return those of the executions that have a job or a child. The query probes for one job of each."""
    there = Execution.objects.filter(has_jobs(), pk__in=execution_ids)
    return list(there.values_list("pk", flat=True))
