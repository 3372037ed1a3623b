"""The arguments that jobs have asked for are written into their rows."""

from collections.abc import Iterable

from tasks.jobs.celery_json import as_json
from tasks.jobs.records.arguments import Request
from tasks.models.job import Job


def write_arguments(requests: Iterable[Request]) -> None:
    """Write the requested arguments of these jobs, for each later message. A row with later ones stays as it is.

    Each write locks a row, so they are written in the order of their ids.
    """
    for one in sorted(requests, key=lambda one: one.task_id):
        args, kwargs = as_json([one.arguments.args, one.arguments.kwargs])
        revision = one.arguments.revision
        older = Job.objects.filter(pk=one.task_id, task__job_id=one.job, arguments_revision__lt=revision)
        older.update(args=args, kwargs=kwargs, arguments_revision=revision, takes_result=False)
