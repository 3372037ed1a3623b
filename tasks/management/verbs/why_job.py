"""Say why the job of a task does not run, or that it does. Changes nothing."""

from typing import Any

from harbor_refresh.executions.errors import NoSuchTask
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.queries import why
from harbor_refresh.tasks.models.job import Job

HELP = "say why the job of this task does not run, or where it runs"


def answer(options: dict[str, Any]) -> Answer:
    task = Task.objects.filter(pk=options["task"]).first()
    if task is None:
        raise NoSuchTask(options["task"])
    job = Job.objects.filter(pk=task.pk).first()
    reason = why(job) if job else "it has no job: another program runs it, and reports it"
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
