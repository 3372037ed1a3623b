"""TrackedJob: the base of Celery tasks that are tasks of an execution. A run in its process: begin, run, end,
retry."""

import inspect
import logging
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NoReturn

from celery import Celery
from celery.exceptions import Ignore, Reject

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import json_text, made_storable, said_by
from harbor_refresh.tasks.jobs.limits import refuse_limit
from harbor_refresh.tasks.jobs.messages import header as message_header
from harbor_refresh.tasks.jobs.nodes import EAGER, exhausted, this_node
from harbor_refresh.tasks.jobs.outcomes import MAX_MESSAGE, Begun, Outcome, begin
from harbor_refresh.tasks.jobs.running import writer
from harbor_refresh.tasks.jobs.running.coroutines import make_plain
from harbor_refresh.tasks.jobs.running.handle import Handle, Untracked
from harbor_refresh.tasks.jobs.running.kept_ends import Kept, kept_result, kept_traceback
from harbor_refresh.tasks.jobs.starting.celery_json import as_json, native
from harbor_refresh.tasks.jobs.starting.declarations import (
    JobTask,
    checked_result,
    refuse_arguments,
    refuse_generator,
)
from harbor_refresh.tasks.jobs.starting.options import moment_of, refuse_options_of_retry
from harbor_refresh.tasks.without_redis import agenda, mode

log = logging.getLogger("harbor_refresh")

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
    Request = "harbor_refresh.tasks.jobs.messages.celery_events:TrackedRequest"
    # Fixed for every setting of the app: a message that is acknowledged before its run has begun may be lost.
    acks_late = True
    reject_on_worker_lost = True

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Check the declaration, and make an `async def` a plain function. Celery calls this when the task belongs
        to an app."""
        refuse_generator(str(cls.name), cls.run)
        refuse_limit(cls)
        make_plain(cls)
        if cls.typing:
            cls.checks_arguments, cls.typing = True, False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Begin the run of the message; run it with the arguments of its row; have its end written.

        If the process dies on any line, the row says that it runs here, and its worker releases it. If the
        database is away at the beginning, the message goes back; at the end, the end waits in this process.
        """
        header = self.request.get(message_header.NAME)
        if self.request.called_directly or header is None or self.request.get(HANDLE):  # it may call itself
            return self.run(Untracked(self), *args, **kwargs)
        found = message_header.read(header)
        if found is None:
            raise Ignore
        if mode.is_eager():
            return self._begin_and_run(*found)
        with writer.of_this_process.get().has(*found) as is_new:
            if not is_new:
                raise Ignore
            return self._begin_and_run(*found)

    def _begin_and_run(self, task_id: int, number: int) -> Any:
        begun, job = self._begin(task_id, number), None
        try:
            job = Handle(self, begun)
            return self._run(job)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:
            if job and not job.waits_for_another_try:
                self._end(job, Status.ERROR, said_by(exc), kept=kept_traceback(exc, __name__))
                agenda.add_failure(exc)
            raise
        finally:
            # else the process ends, or a time limit struck here: what it has forgotten is released
            if not (job and job.is_settled) and not mode.is_eager():
                writer.of_this_process.get().forget(begun.run)

    def _run(self, job: Handle) -> Any:
        given, named = native(job.given.args), native(job.given.kwargs)
        self.request.update(**{HANDLE: job}, retries=job.given.retries)
        if isinstance(self.request.args, list) and isinstance(self.request.kwargs, dict):
            self.request.args[:] = given  # in their places, where the other hooks of Celery's look for them
            self.request.kwargs.update(named)
        else:
            self.request.update(args=given, kwargs=named)
        result = self._run_code(job, given, named)
        if not job.waits_for_another_try:  # it may return although it has asked for that
            self._end_well(job, result)
        return result

    def _begin(self, task_id: int, number: int) -> Begun:
        node = EAGER if mode.is_eager() else this_node.id
        try:
            begun = begin(task_id, str(self.request.id), number, node, os.getpid())
        except Exception as exc:  # a time limit may end it here as well
            with suppress(Exception):
                time.sleep(PAUSE_SECONDS)
            raise Reject(said_by(exc), requeue=True) from None  # Celery logs each try: without a traceback
        if begun is None:
            self._refuse(task_id)
        return begun

    def _refuse(self, task_id: int) -> NoReturn:
        """A copy of a message, or a late one, is ignored. If this worker counts as dead, or does not beat, the
        message goes back: the worker may be known again in a moment, and another one may take it."""
        with suppress(DatabaseAway):
            if mode.is_eager() or this_node.is_known():
                raise Ignore
        log.warning("The job of task %d goes back to the broker: this worker gives no sign of life", task_id)
        with suppress(Exception):
            time.sleep(PAUSE_SECONDS)
        raise Reject("this worker gives no sign of life", requeue=True)

    def _run_code(self, job: Handle, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not mode.is_eager():
            return checked_result(self.run(job, *args, **kwargs))
        with agenda.with_savepoint():
            return checked_result(self.run(job, *args, **kwargs))

    def _end_well(self, job: Handle, result: Any) -> None:
        if job.was_told_to_stop:
            self._end(job, Status.STOPPED, "it was asked to stop, and did")
            return
        try:
            text = json_text(as_json(result)) if job.given.is_needed else None
        except (TypeError, ValueError) as exc:
            why = f"another job needs its result as JSON, and it returned something else: {exc}"
            self._end(job, Status.ERROR, why)
        else:
            self._end(job, Status.SUCCESS, result=text, kept=kept_result(result) if self.keep_result else None)

    def _end(
        self,
        job: Handle,
        status: Status,
        message: str = "",
        *,
        result: str | None = None,
        kept: Kept | None = None,
    ) -> None:
        message = made_storable(message)[:MAX_MESSAGE]
        is_needed = job.given.is_needed
        job.take(Outcome(job.run, status, message, result=result, kept=kept, is_needed=is_needed))

    def retry(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, exc: Exception | None = None, **options: Any
    ) -> Any:
        """Retry as Celery does; for a tracked job, put the reason into the status message of its task."""
        if job := self.request.get(HANDLE):
            refuse_options_of_retry(self, options)
            job.reason = made_storable(said_by(exc) if exc else "it asked for another try")[:MAX_MESSAGE]
        args, kwargs = _merged(self.run, self.request, args, kwargs)
        if job is None or not mode.is_eager():
            return super().retry(args, kwargs, exc, **options)
        # to Celery another try in eager mode is part of this one
        throws = options.pop("throw", True)
        again = super().retry(args, kwargs, exc, throw=False, **options)
        again.sig.apply_async()  # type: ignore[attr-defined]  # celery-types does not know it
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
        asked = None if arguments == given else arguments
        if asked:
            try:
                json_text(as_json(asked))
            except (TypeError, ValueError) as exc:
                raise ValueError(f"another try takes arguments that are JSON: {exc}") from exc
        job.waits_for_another_try = True
        if job.run.number >= job.given.may_begin:
            job.take(Outcome(job.run, Status.ERROR, exhausted(job.given.may_begin)))
        else:
            job.take(
                Outcome(
                    job.run,
                    Status.SCHEDULED,
                    job.reason,
                    delay=delay if delay > 0 else None,
                    arguments=asked,
                    retries=retries,
                )
            )


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
    return float(options.get("countdown") or 0)
