"""Say why the status of an execution is not what its tasks say, and what to do; or why a job does not run. Changes
nothing."""

from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.errors import NoSuchTask
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs import queries
from harbor_refresh.tasks.models.job import Job
from harbor_refresh.tasks.pipeline.diagnosis import diagnose

HELP = "say where an execution is, why it is not refreshed, and what to do; or why a job does not run"


def arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", type=positive_integer, metavar="ID", help="the execution")
    which.add_argument(
        "--task",
        type=positive_integer,
        metavar="TASK",
        help="say why the job of this task does not run, or where it runs",
    )


def answer(options: dict[str, Any]) -> Answer:
    return _of_job(options["task"]) if options["task"] else _of_execution(options["id"])


def _of_execution(execution_id: int) -> Answer:
    found = diagnose(execution_id)
    row, where = found.comparison, found.where
    tokens = where and [
        {"node": token.node, "state": "waits" if token.is_waiting else "works"} for token in where.tokens
    ]
    data = {
        "execution_id": row.execution_id,
        "vendor": row.vendor_type,
        "status": row.status,
        "true_status": row.true_status,
        "is_right": row.is_right,
        "is_locked": row.is_locked,
        "quarantine": row.reason,
        "on_the_queue": where and where.is_queued,
        "failures": where and where.failures,
        "claims": tokens,
        "findings": list(found.findings),
    }
    rows = [
        ("execution", f"{row.execution_id} {row.vendor_type}"),
        ("status", row.status),
        ("by its tasks", row.true_status or "it has no tasks"),
    ]
    return Answer(data, [table(("", ""), rows), *found.findings])


def _of_job(task_id: int) -> Answer:
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise NoSuchTask(task_id)
    job = Job.objects.filter(pk=task_id).first()
    reason = queries.why(job) if job else "it has no job: another program runs it, and reports it"
    data = {
        "task_id": task.pk,
        "execution_id": task.execution_id,
        "status": task.status,
        "job": job and {"name": job.name, "queue": job.queue, "state": job.state, "runs": job.run},
        "why": reason,
    }
    rows = [("task", f"{task.pk} of execution {task.execution_id}"), ("status", task.status)]
    if job:
        rows += [("job", job.name), ("queue", job.queue), ("state", job.state)]
    return Answer(data, [table(("", ""), [*rows, ("why", reason)])])
