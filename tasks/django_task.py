"""The job that runs a task of Django's Tasks framework: `TrackedBackend` of harbor_refresh/tasks_backend.py."""

from typing import Any

from celery import shared_task
from django.utils.module_loading import import_string

from harbor_refresh.tasks.jobs.handle import Handle
from harbor_refresh.tasks.jobs.tracked import TrackedJob


@shared_task(base=TrackedJob, name="harbor_refresh.task", keep_result=True)
def run_task(job: Handle, path: str, args: list[Any], kwargs: dict[str, Any], using: dict[str, Any]) -> Any:
    """Run the task at this path. `using` is what it was enqueued with: its backend, its queue, its priority."""
    task = import_string(path)
    if not callable(getattr(task, "get_backend", None)):
        raise TypeError(f"{path} is no task: it has no @task")
    task = task.using(**using)
    return task.get_backend().run(job, task, args, kwargs)
