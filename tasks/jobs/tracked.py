"""TrackedJob: the base of Celery tasks that are tasks of an execution.

Each status change of a job is recorded in Redis first. If its report fails, recovery sends it
(lifecycle/).
"""

import json
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from celery import Celery
from celery.exceptions import Ignore, Reject

from harbor_refresh.executions.errors import DatabaseAway, JobChanged, QueueUnavailable
from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import made_storable, said_by
from harbor_refresh.tasks.jobs import message_header
from harbor_refresh.tasks.jobs.another_try import delay_of, merged, wait_for_another_try
from harbor_refresh.tasks.jobs.celery_json import native
from harbor_refresh.tasks.jobs.declarations import checked_result, refuse_arguments, refuse_unplain
from harbor_refresh.tasks.jobs.delivery import recorder, reporter
from harbor_refresh.tasks.jobs.handle import Handle, Untracked
from harbor_refresh.tasks.jobs.job_task import JobTask
from harbor_refresh.tasks.jobs.lifecycle.admission import begin
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.options import refuse_options_of_retry
from harbor_refresh.tasks.jobs.records.arguments import Arguments
from harbor_refresh.tasks.jobs.records.attachments import message_of_end, text_of_result
from harbor_refresh.tasks.jobs.records.kept import Kept, kept_result, kept_traceback
from harbor_refresh.tasks.jobs.records.record import MAX_MESSAGE
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.records.run import Begun, ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.jobs.runtime import current_runs, eager
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.without_redis import agenda, mode
from harbor_refresh.tasks.without_redis.savepoint import with_savepoint

#: The name of a run's handle in Celery's request.
HANDLE = "harbor_handle"
#: Pause before a message is returned to the broker, because it comes again at once.
PAUSE_SECONDS = 1.0


class TrackedJob(JobTask):
    """The function gets a `Handle` before its own arguments."""

    abstract = True
    Request = "harbor_refresh.tasks.jobs.runtime.request:TrackedRequest"
    # Fixed for every setting of the app: a message that is acknowledged before its job has ended may be lost.
    acks_late = True
    reject_on_worker_lost = True

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Check the declaration. Celery calls this when the task belongs to an app."""
        refuse_unplain(str(cls.name), cls.run)
        if cls.typing:
            cls.checks_arguments, cls.typing = True, False

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Begin the run, if it may run here and now; run it; have its end recorded and reported.

        What if the process dies on any line: the record says that it runs here, its lease is not renewed, and
        recovery releases the job. What if Redis is away at the beginning: the message goes back, and this node
        takes a new name, because it cannot know whether the run was recorded. At the end: the report still goes to
        the database, which is what counts.
        """
        header = self.request.get(message_header.NAME)
        if self.request.called_directly or header is None or self.request.get(HANDLE):  # it may call itself
            return self.run(Untracked(self), *args, **kwargs)
        received = message_header.received(str(self.request.id), header)
        of_message = Arguments([*args], kwargs, received.arguments_revision)
        begun = self._begin(received, of_message)
        job = Handle(self, begun.run, begun.arguments or of_message, is_followed=header["followed"])
        self.request.update(**{HANDLE: job})
        current_runs.begin(job.run)
        try:
            # those of the database are stored as JSON, and a message may be written in something else
            given, named = native([job.given.args, job.given.kwargs])
            self.request.update(args=given, kwargs=named)
            result = self._run_code(job, given, named)
            self._end_well(job, result)
        except (SystemExit, KeyboardInterrupt):
            # the process was told to end, so recovery must release its run
            current_runs.end(job.run)
            this_node.renew()
            raise
        except BaseException as exc:
            if not job.waits_for_another_try:
                self._end(job, Status.ERROR, said_by(exc), kept=kept_traceback(exc, __name__))
                agenda.add_failure(exc)
            raise
        return result

    def _run_code(self, job: Handle, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not mode.is_eager():
            return checked_result(self.run(job, *args, **kwargs))
        with with_savepoint():
            return checked_result(self.run(job, *args, **kwargs))

    def _begin(self, received: ReceivedMessage, of_message: Arguments) -> Begun:
        try:
            begun = begin(received, this_node.name)
        except Exception as exc:  # a time limit may end it here as well
            if not isinstance(exc, DatabaseAway | JobChanged):
                this_node.renew()
            with suppress(Exception):
                time.sleep(PAUSE_SECONDS)
            raise Reject(said_by(exc), requeue=True) from None  # Celery logs each try: without a traceback
        if report := _report_of(begun):
            # the process that has asked for these arguments may have died
            unreported = (begun.arguments or of_message) if begun.are_unreported else None
            retries = self.request.retries or 0
            reporter.put(replace(report, arguments=unreported, retries=retries))
        if begun.verdict != Verdict.GO:
            raise Ignore
        return begun

    def _end_well(self, job: Handle, result: Any) -> None:
        if job.was_told_to_stop:
            self._end(job, Status.STOPPED, "it was asked to stop, and did")
        else:
            self._end_with_result(job, result)

    def _end_with_result(self, job: Handle, result: Any) -> None:
        try:
            text = text_of_result(result) if job.is_followed else None
        except ValueError as exc:
            self._end(job, Status.ERROR, str(exc))
        else:
            self._end(job, Status.SUCCESS, result=text, kept=kept_result(result) if self.keep_result else None)

    def _end(
        self, job: Handle, status: str, message: str = "", *, result: str | None = None, kept: Kept | None = None
    ) -> None:
        message = made_storable(message)[:MAX_MESSAGE]
        recorder.put(partial(_record, job.run, status, message, result, kept, is_followed=job.is_followed))

    def retry(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, exc: Exception | None = None, **options: Any
    ) -> Any:
        """Retry as Celery does; for a tracked job, put the reason into the status message of its task."""
        if job := self.request.get(HANDLE):
            refuse_options_of_retry(self, options)
            why = said_by(exc) if exc else "it asked for another try"
            job.reason = made_storable(why)[:MAX_MESSAGE]
            job.gives_arguments = args is not None or kwargs is not None
        args, kwargs = merged(self.run, self.request, args, kwargs)
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
        """Send a message. If it is for another try of this run, the job is first recorded as waiting in a new
        revision, because the message may be delivered at once. Raises TypeError, as Celery does, for arguments
        that the function does not take."""
        refuse_arguments(self, args or (), kwargs or {})
        job = self.request.get(HANDLE)
        if job and task_id == job.run.job:
            revision, arguments = wait_for_another_try(
                job, delay_of(options), args, kwargs, options.get("retries") or 0
            )
            headers = message_header.of_another_try(
                self.request.get(message_header.NAME) or {}, revision, job.run.runs, arguments
            )
            options["headers"] = {**(options.get("headers") or {}), **headers}
            if mode.is_eager():
                eager.put(self.name, args, kwargs, {**options, "task_id": task_id})
                return None
        return super().apply_async(args, kwargs, task_id=task_id, **options)


def _record(
    run: Run, status: str, message: str, result: str | None, kept: Kept | None, *, is_followed: bool
) -> None:
    """Record and report the end of a run. `result` is JSON."""
    try:
        revision = job_records().settle(run, status, message_of_end(message, result, kept))
    except QueueUnavailable:
        revision = run.revision
    finally:
        current_runs.end(run)
    if revision is not None:
        value = result and json.loads(result)
        reporter.put(
            JobReport.of_run(run, status, revision, message, result=value, is_followed=is_followed, kept=kept)
        )


def _report_of(begun: Begun) -> JobReport | None:
    """Return the report of a message that was received; None for a copy of another message."""
    match begun.verdict:
        case Verdict.GO:
            return JobReport.of_run(begun.run, Status.RUNNING)
        case Verdict.EXHAUSTED:
            return JobReport.of_run(begun.run, Status.ERROR, message=begun.why)
    return None
