"""TrackedJob: the base of Celery tasks that are tasks of an execution. A run in its process: begin, run, end,
retry."""

import inspect
import os
import time
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

from billiard.exceptions import WorkerLostError
from celery import Celery
from celery.exceptions import Ignore, Reject

from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import json_text, said_by
from harbor_refresh.tasks.jobs.limits import refuse_limit
from harbor_refresh.tasks.jobs.live_workers import this_worker
from harbor_refresh.tasks.jobs.outcomes import (
    HEADER,
    REFUSED_BY_OLDER_CODE,
    Run,
    end_sent,
    end_unbegun,
    exhausted,
    run_of,
)
from harbor_refresh.tasks.jobs.running import kept_connections, writer
from harbor_refresh.tasks.jobs.running.coroutines import make_plain
from harbor_refresh.tasks.jobs.running.handle import Begun, Handle, Untracked, begin
from harbor_refresh.tasks.jobs.running.kept_ends import kept_result, kept_traceback
from harbor_refresh.tasks.jobs.running.reaper import EAGER
from harbor_refresh.tasks.jobs.starting.celery_json import as_json, native
from harbor_refresh.tasks.jobs.starting.declarations import (
    JobTask,
    checked_result,
    refuse_arguments,
    refuse_default_of_handle,
    refuse_generator,
)
from harbor_refresh.tasks.jobs.starting.options import moment_of, refuse_options_of_retry
from harbor_refresh.tasks.without_redis import agenda, mode

#: The name of a run's handle in Celery's request.
HANDLE = "harbor_handle"
#: Pause before a message is returned to the broker, because it comes again at once.
PAUSE_SECONDS = 1.0


class TrackedJob(JobTask):
    """The base of a tracked job: `@app.task(base=TrackedJob)`. Its function gets a `Handle` before its arguments.

    Attributes:
        max_attempts: How often the job may begin, including after a crash of its worker and after each `retry`.
            Default: as often as its `max_retries` need, but at least five times.
        unique: Whether the job is skipped while a job with the same name and arguments is queued or running.
        keep_result: Whether its return value is kept, for `TrackedExecution.results()`.
        concurrency: How many of these jobs run at a time, across all workers.
        rate: How many of these jobs begin in a period, across all workers, such as `"100/m"`.
        key: A function of the job (`job.args`, `job.kwargs`). `concurrency` and `rate` apply to each value of it.
    """

    abstract = True
    Request = "harbor_refresh.tasks.jobs.running.dropped_messages:TrackedRequest"
    # Fixed for every setting of the app: a message that is acknowledged before its run has begun may be lost.
    acks_late = True
    reject_on_worker_lost = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Check the function, and make an `async def` a plain one, before `autoretry_for` wraps it."""
        super().__init_subclass__(**options)
        refuse_generator(cls.name or cls.__qualname__, cls.run)
        refuse_default_of_handle(cls)
        make_plain(cls)

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Check the declaration. Celery calls this when the task belongs to an app."""
        refuse_limit(cls)
        if cls.key:
            cls.key = staticmethod(cls.key)  # else it would become a method
        if cls.typing:
            cls.checks_arguments, cls.typing = True, False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Begin the run of the message; run it with the arguments of its row; have its end written.

        If the process dies on any line, the row says that it runs here, and its worker releases it. If the
        database is down at the beginning, the message goes back; at the end, the end waits in this process.
        """
        header = _header_of(self.request)
        if self.request.called_directly or header is None or self.request.get(HANDLE):  # it may call itself
            return self.run(Untracked(self), *args, **kwargs)
        found = run_of(header)
        if found is None:
            raise Ignore
        return self._begin_and_run(*found)

    def _begin_and_run(self, task_id: int, number: int) -> Any:
        begun, job = self._begin(task_id, number), None
        try:
            job = Handle(self, begun)
            if begun.has_expired:
                what = "began" if begun.run.number == 1 else "ran again"
                job.take(Status.STOPPED, f"it expired before it {what}")
                raise Ignore
            return self._run(job)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            if job and not job.is_settled:
                job.take(Status.ERROR, said_by(exc), kept=kept_traceback(exc, __name__))
                agenda.add_failure(exc)
            raise
        finally:
            # else the process ends, or a time limit struck here: what it has forgotten is released
            if not (job and job.is_settled) and not mode.is_eager():
                writer.of_this_process.get().forget(begun.run)

    def _begin(self, task_id: int, number: int) -> Begun:
        worker = EAGER if mode.is_eager() else this_worker.id
        try:
            if not mode.is_eager():
                writer.of_this_process.get()  # before the begin: the writer releases a run whose reply is lost
            with nullcontext() if mode.is_eager() else kept_connections.of_this_process.get().use():
                begun = begin(task_id, str(self.request.id), number, worker, os.getpid())
        except Exception as exc:  # a time limit may end it here as well
            if end_unbegun(Run(task_id, str(self.request.id), number), exc):
                raise Ignore from None
            with suppress(Exception):
                time.sleep(PAUSE_SECONDS)
            raise Reject(said_by(exc), requeue=True) from None  # Celery logs each try: without a traceback
        if begun is None:  # it is a copy, or comes late, or this worker counts as dead: then it is sent again
            raise Ignore
        return begun

    def _run(self, job: Handle) -> Any:
        args, kwargs = native(job.given.args), native(job.given.kwargs)
        request: Any = self.request
        request.update(**{HANDLE: job}, retries=job.given.retries)
        request.kwargs.clear()  # of the message, which has none of the job's
        request.kwargs.update(kwargs)
        if isinstance(request.args, list):  # in its place, where the other hooks of Celery's look for it
            request.args[:] = args
        else:  # of a serializer that keeps tuples
            request.args = args
        with agenda.with_savepoint() if mode.is_eager() else nullcontext():
            result = checked_result(self.run(job, *args, **kwargs))
        if not job.is_settled:  # it may return although it has asked for another try
            self._end_well(job, result)
        return result

    def _end_well(self, job: Handle, result: Any) -> None:
        if job.was_told_to_stop:
            job.take(Status.STOPPED, "it was asked to stop, and did")
            return
        try:
            text = json_text(as_json(result)) if job.given.is_needed else None
        except (TypeError, ValueError) as exc:
            job.take(Status.ERROR, f"another job needs its result as JSON, and it returned something else: {exc}")
        else:
            job.take(Status.SUCCESS, result=text, kept=kept_result(result) if self.keep_result else None)

    def retry(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, exc: Exception | None = None, **options: Any
    ) -> Any:
        """Retry as Celery does; for a tracked job, put the reason into the status message of its task."""
        if job := self.request.get(HANDLE):
            refuse_options_of_retry(self, options)
            job.reason = said_by(exc) if exc else "it asked for another try"
        elif given := self.request.kwargs:  # a hook asks before the run, with the arguments of the message
            self.request.update(kwargs={name: given[name] for name in given.keys() - REFUSED_BY_OLDER_CODE})
        args, kwargs = _merged(self.run, self.request, args, kwargs)
        if job is None or not mode.is_eager():
            return super().retry(args, kwargs, exc, **options)
        # to Celery another try in eager mode is part of this one
        throws = options.pop("throw", True)
        again = super().retry(args, kwargs, exc, throw=False, **options)
        again.sig.apply_async()  # type: ignore[attr-defined]  # celery-types does not know it
        again.sig = None  # type: ignore[attr-defined]  # `apply` would run it once more
        if throws:
            raise again
        return again

    def apply_async(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, task_id: str | None = None, **options: Any
    ) -> Any:
        """Send a message. If it is for another try of this run, the row waits for that, and the sender sends it
        when its time has come. Raises TypeError, as Celery does, for arguments that the function does not take."""
        refuse_arguments(self, args or (), kwargs or {})
        job = self.request.get(HANDLE)
        if job and task_id == job.run.job:
            self._wait_for_another_try(job, _delay_of(options), args, kwargs, options.get("retries") or 0)
            return None
        return super().apply_async(args, kwargs, task_id=task_id, **options)

    def _wait_for_another_try(self, job: Handle, delay: float, args: Any, kwargs: Any, retries: int) -> None:
        """Have the row wait for its retry of this number: running -> waiting. A job that has begun as often as it
        may ends instead."""
        given = native(job.given.args), native(job.given.kwargs)
        arguments = [*(args or ())], dict(kwargs or {})
        asked = None
        if arguments != given:
            try:
                asked = as_json(arguments)
                json_text(asked)
            except (TypeError, ValueError) as exc:
                raise ValueError(f"another try takes arguments that are JSON: {exc}") from exc
        if job.run.number >= job.given.may_begin:
            job.take(Status.ERROR, f"{exhausted(job.given.may_begin)}; at last: {job.reason}")
        else:
            job.take(Status.SCHEDULED, job.reason, delay=delay or None, arguments=asked, retries=retries)


def on_failed(sender: Any, exception: BaseException, **_: Any) -> None:
    """End the job of a message that has failed before its run began, in a `before_start` or a `__call__` of the
    project: sent -> ended. If the database is down, the message comes again."""
    its = _unbegun(sender.request)
    if its and isinstance(sender, TrackedJob) and not isinstance(exception, WorkerLostError):  # then it runs again
        end_sent(its, said_by(exception), kept_traceback(exception, "celery.app.trace"))
        agenda.add_failure(exception)


def on_untracked(sender: Any, **_: Any) -> None:
    """End the job of a message whose task is a plain one here: sent -> ended. The message has an argument that few
    functions take (outcomes.py), so that its function seldom runs. Without this, it would come again and again."""
    if not isinstance(sender, TrackedJob) and (its := _unbegun(sender.request)):
        end_sent(its, "the worker that got it has older code, without base=TrackedJob: restart the worker")


def _unbegun(request: Any) -> Run | None:
    """Return the run of this message, if it has not begun; None of a message that is none of ours."""
    found = None if request.get(HANDLE) else run_of(_header_of(request))
    return Run(found[0], str(request.id), found[1]) if found else None


def _header_of(request: Any) -> Any:
    return request.get(HEADER) or (request.headers or {}).get(HEADER)  # a tracer may add `headers`


def _merged(run: Any, request: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of another try. Those that are not given stay, except where those that are given take
    their place, as in Celery, which would take the handle for the first of them."""
    if (args is None) == (kwargs is None):
        return args, kwargs
    parameters = list(inspect.signature(run).parameters.values())[1:]
    named = [one.name if one.kind is one.POSITIONAL_OR_KEYWORD else None for one in parameters]
    if args is not None:
        placed = {*named[: len(args)]}
        return args, {name: value for name, value in (request.kwargs or {}).items() if name not in placed}
    args, kwargs = list(request.args or ()), dict(kwargs)
    for place, name in enumerate(named[: len(args)]):
        if name in kwargs:
            args[place] = kwargs.pop(name)
    return args, kwargs


def _delay_of(options: dict[str, Any]) -> float:
    """Return the delay in seconds of a message with these options."""
    if eta := options.get("eta"):
        return max(0.0, (moment_of(eta) - datetime.now(UTC)).total_seconds())
    return max(0.0, float(options.get("countdown") or 0))
