"""TrackedBackend: tasks of Django's Tasks framework run as tracked jobs.

    TASKS = {"default": {"BACKEND": "harbor_refresh.tasks_backend.TrackedBackend"}}

The framework is `django.tasks` from Django 6.0 on, and the package django-tasks before.
See docs/howto/django_tasks.md.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module
from traceback import format_exception
from typing import Any

import django
from celery.exceptions import Retry
from django.utils import timezone
from django.utils.module_loading import import_string

from harbor_refresh.executions.lifecycle.creation import NewExecution
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import is_whole
from harbor_refresh.tasks.celery_tasks import run_task
from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.running import kept_ends as kept
from harbor_refresh.tasks.jobs.running.coroutines import plain
from harbor_refresh.tasks.jobs.starting import job_rows
from harbor_refresh.tasks.jobs.starting.canvas import parts_of
from harbor_refresh.tasks.jobs.starting.celery_json import native
from harbor_refresh.tasks.jobs.starting.declarations import MAX_ATTEMPTS
from harbor_refresh.tasks.jobs.starting.options import Takes, moment_of, refuse
from harbor_refresh.tasks.models import Job

PACKAGE = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
base: Any = import_module(f"{PACKAGE}.base")
backends: Any = import_module(f"{PACKAGE}.backends.base")
exceptions: Any = import_module(f"{PACKAGE}.exceptions")
signals: Any = import_module(f"{PACKAGE}.signals")

#: Django's priorities are from -100 to 100, and higher goes first. Celery's are from 0 to 9, and 0 goes first.
LEAST_URGENT = 9
STATUSES = {
    Status.PENDING: base.TaskResultStatus.READY,
    Status.SCHEDULED: base.TaskResultStatus.READY,
    Status.RUNNING: base.TaskResultStatus.RUNNING,
    Status.SUCCESS: base.TaskResultStatus.SUCCESSFUL,
    Status.ERROR: base.TaskResultStatus.FAILED,
    Status.STOPPED: base.TaskResultStatus.FAILED,
}
#: A worker has no name that outlives it.
SOME_WORKER = "unknown"

_execution: ContextVar[int | None] = ContextVar("harbor_refresh_execution", default=None)


@contextmanager
def within(execution: Execution) -> Iterator[None]:
    """Have the tasks that are enqueued meanwhile join this execution, instead of an execution for each."""
    token = _execution.set(execution.pk)
    try:
        yield
    finally:
        _execution.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedTask(base.Task):  # type: ignore[misc]  # the framework is imported by its name
    """A task with the options that are proposed for Django itself: github.com/django/new-features/issues/142.

    Attributes:
        max_attempts: How often the task may begin, including after a crash of its worker.
        backoff: A function of the exception and the result: the seconds until the next attempt, or None for none.
    """

    max_attempts: int | None = None
    backoff: Callable[[Exception, Any], float | None] | None = None

    def __post_init__(self) -> None:
        base.Task.__post_init__(self)
        attempts = Takes(f"a whole number from 1 to {MAX_ATTEMPTS:,}", lambda it: is_whole(it, 1, MAX_ATTEMPTS))
        refuse(self.module_path, "max_attempts", self.max_attempts, attempts)
        refuse(self.module_path, "backoff", self.backoff, Takes("a function", callable))


class ReturnValueNotKept(ValueError):
    """The task has succeeded, but what it returned is too large, or is no JSON."""


class TrackedResult(base.TaskResult):  # type: ignore[misc]
    @property
    def return_value(self) -> Any:
        value = super().return_value
        if isinstance(value, ReturnValueNotKept):
            raise ReturnValueNotKept(str(value))  # another one each time, or its traceback would grow
        return value


class TrackedBackend(backends.BaseTaskBackend):  # type: ignore[misc]
    task_class = TrackedTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> TrackedResult:
        """Record a job, and publish it after the commit, as `start` does."""
        self.validate_task(task)
        using = {"backend": self.alias, "queue_name": task.queue_name, "priority": task.priority}
        signature = run_task.s(task.module_path, list(args), dict(kwargs), using).set(**_options_of(task))
        ((job,),) = parts_of([signature])
        job = replace(job, max_attempts=getattr(task, "max_attempts", None) or job.max_attempts)
        result = _result(task, job.job_id, list(args), dict(kwargs), enqueued_at=timezone.now())
        execution_id = _execution.get()
        if execution_id is None:
            vendor_type = self.options.get("vendor_type", "TASK")
            job_rows.start_or_find(NewExecution(vendor_type, trigger="MANUAL"), [[job]])
        else:
            job_rows.add(execution_id, [[job]])
        signals.task_enqueued.send(sender=type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TrackedResult:
        job = Job.objects.select_related("task").filter(name=run_task.name, task__job_id=result_id).first()
        if job is None:
            raise exceptions.TaskResultDoesNotExist(result_id)
        return _result_of(job)

    def run(self, job: Handle, task: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run a task in a worker, and return what it returns, which is kept with the end of the job.

        If the worker dies, then the job is run again, and no signal tells its end.
        """
        result = self.get_result(job.run.job)
        began = timezone.now()
        result = replace(
            result,
            status=base.TaskResultStatus.RUNNING,
            started_at=result.started_at or began,
            last_attempted_at=began,
            worker_ids=[SOME_WORKER] * job.run.number,
        )
        signals.task_started.send(sender=type(self), task_result=result)
        context = [base.TaskContext(task_result=result)] if task.takes_context else []
        try:
            value = plain(task.func)(*context, *args, **kwargs)
        except Exception as exc:
            path = f"{type(exc).__module__}.{type(exc).__qualname__}"
            error = base.TaskError(exception_class_path=path, traceback="".join(format_exception(exc)))
            failed = replace(result, status=base.TaskResultStatus.FAILED, errors=[error])
            try:
                _retry(job, task, failed, exc)
            except Retry:
                raise
            except Exception as of_backoff:
                exc.add_note("".join(format_exception(of_backoff, chain=False)))
            self._finish(failed)
            raise
        self._finish(replace(result, status=base.TaskResultStatus.SUCCESSFUL), value)
        return value

    def _finish(self, result: TrackedResult, value: Any = None) -> None:
        finished = replace(result, finished_at=timezone.now())
        _set_return_value(finished, value)
        signals.task_finished.send(sender=type(self), task_result=finished)


def _retry(job: Handle, task: Any, failed: TrackedResult, exc: Exception) -> None:
    """Raise Celery's Retry if the task has a retry policy that allows another attempt."""
    # a task that was declared for another backend has neither
    attempts, backoff = getattr(task, "max_attempts", None), getattr(task, "backoff", None)
    if (attempts or backoff) and job.run.number < job.given.may_begin:
        delay = backoff(exc, failed) if backoff else 0
        if delay is not None:
            job.retry(exc=exc, countdown=delay, max_retries=job.given.may_begin)


def _options_of(task: Any) -> dict[str, Any]:
    lowest, highest = base.TASK_MIN_PRIORITY, base.TASK_MAX_PRIORITY
    options: dict[str, Any] = {"priority": LEAST_URGENT * (highest - task.priority) // (highest - lowest)}
    if task.queue_name != base.DEFAULT_TASK_QUEUE_NAME:
        options["queue"] = task.queue_name
    if task.run_after is not None:
        at = task.run_after  # without a time zone only in a project with USE_TZ = False
        options["eta"] = timezone.make_aware(at) if timezone.is_naive(at) else at
    return options


def _result_of(job: Job) -> TrackedResult:
    path, args, kwargs, using = job.args
    row = job.task
    eta = job.options.get("eta")
    task = import_string(path).using(**using, run_after=moment_of(eta) if eta else None)
    end = kept.end_of(job.pk)
    errors = []
    if row.status in (Status.ERROR, Status.STOPPED):
        said = end.traceback if end else row.status_message
        errors = [base.TaskError(exception_class_path="builtins.Exception", traceback=said)]
    runs = row.run_count + (row.status not in (Status.PENDING, Status.SCHEDULED))
    result = _result(
        task,
        row.job_id,
        args,
        kwargs,
        status=STATUSES[Status(row.status)],
        enqueued_at=row.creation_time,
        started_at=row.start_time,
        last_attempted_at=row.start_time,
        finished_at=row.end_time,
        errors=errors,
        worker_ids=[SOME_WORKER] * runs,
    )
    if end:
        _set_return_value(result, ReturnValueNotKept(end.why_not) if end.why_not else native(end.result))
    return result


def _set_return_value(result: TrackedResult, value: Any) -> None:
    object.__setattr__(result, "_return_value", value)  # as the framework's own backends do


def _result(task: Any, job_id: str, args: list[Any], kwargs: dict[str, Any], **known: Any) -> TrackedResult:
    """Return a result of which this is known. Raises as the framework does for arguments that are no JSON."""
    unknown: dict[str, Any] = dict.fromkeys(("started_at", "last_attempted_at", "finished_at"))
    unknown |= {"status": base.TaskResultStatus.READY, "errors": [], "worker_ids": []}
    return TrackedResult(task=task, id=job_id, args=args, kwargs=kwargs, backend=task.backend, **unknown | known)
