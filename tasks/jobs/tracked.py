"""TrackedJob: the base of Celery tasks that are tasks of an execution.

Each turn of a job is recorded in Redis first and reported from there: a report that cannot be made is not
lost, for whoever recovers makes it (executions/usecases/jobs).
"""

import json
import time
from dataclasses import replace
from typing import Any

from celery import Task
from celery.exceptions import Ignore, Reject, Retry

from executions.errors import DatabaseAway, QueueUnavailable
from executions.queue import MAX_MESSAGE, Offer, Verdict, job_records, this_node
from executions.status import Status
from executions.usecases.jobs import RESULT, Turn, known
from tasks.jobs import header
from tasks.jobs.handle import Handle, Untracked
from tasks.jobs.reporter import reporter

MAX_RESULT = 60_000
#: A message that goes back comes again at once.
PAUSE_SECONDS = 1.0


class TrackedJob(Task):  # type: ignore[type-arg]
    """The function gets a `Handle` before its own arguments.

    `max_attempts` is how often it may begin in all: after a crash of its worker, and after each `retry`.
    `unique`: it is not started while one of the same name and arguments is queued or running.
    """

    abstract = True
    #: The handle is not among the arguments of a message.
    typing = False
    max_attempts = 5
    unique = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Begin the run if it may run here and now; run it; record how it ended, and report that.

        What if the process dies on any line: the record says that it runs here, the node falls silent, and
        the job is given back. What if Redis is away at the beginning: the message goes back. At the end: the
        report goes to the database all the same, which is what counts.
        """
        told = self.request.get(header.NAME)
        if self.request.called_directly or told is None:
            return self.run(Untracked(self), *args, **kwargs)
        run = self._begin(told)
        try:
            result = self.run(run, *args, **kwargs)
        except (Retry, Ignore, Reject):
            raise
        except BaseException as exc:
            if isinstance(exc, Exception):
                self._end(run, Status.ERROR, f"{type(exc).__name__}: {exc}")
            raise
        if run.was_told_to_stop:
            self._end(run, Status.STOPPED, "it was asked to stop, and did")
        elif told["followed"]:
            self._hand_on(run, result)
        else:
            self._end(run, Status.SUCCESS)
        return result

    def _begin(self, told: dict[str, Any]) -> Handle:
        info = self.request.delivery_info or {}
        offer = header.offer(str(self.request.id), told, redelivered=bool(info.get("redelivered")))
        try:
            verdict, revision = job_records().begin(offer, this_node.name)
            if verdict == Verdict.ASK:
                verdict, revision = _after_asking(offer)
        except (QueueUnavailable, DatabaseAway) as exc:
            this_node.renew()
            time.sleep(PAUSE_SECONDS)
            raise Reject(str(exc), requeue=True) from exc
        run = Handle(self, offer.job, offer.task_id, revision)
        self.request.update(harbor_run=run)
        if verdict == Verdict.GO:
            reporter.put(Turn(run.id, run.task_id, revision, Status.RUNNING))
            return run
        if verdict == Verdict.STOPPED:
            reporter.put(Turn(run.id, run.task_id, revision, Status.STOPPED, "it was stopped before it began"))
        elif verdict == Verdict.EXHAUSTED:
            reporter.put(Turn(run.id, run.task_id, revision, Status.ERROR, f"it has begun {offer.most} times"))
        raise Ignore

    def _hand_on(self, run: Handle, result: Any) -> None:
        try:
            text = json.dumps(result)
        except (TypeError, ValueError) as exc:
            self._end(run, Status.ERROR, f"a chain hands on JSON, and it returned something else: {exc}")
            return
        if len(text) > MAX_RESULT:
            self._end(run, Status.ERROR, f"it returned {len(text):,} characters, a chain hands on {MAX_RESULT:,}")
        else:
            self._end(run, Status.SUCCESS, result=text)

    def _end(self, run: Handle, status: str, message: str = "", result: str | None = None) -> None:
        message = message[:MAX_MESSAGE]
        try:
            kept = message if result is None else RESULT + result
            now = job_records().settle(run.id, this_node.name, run.revision, status, kept)
        except QueueUnavailable:
            now = run.revision
        if now is not None:
            reporter.put(Turn(run.id, run.task_id, now, status, message, result and json.loads(result)))

    def retry(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, exc: Exception | None = None, **options: Any
    ) -> Any:
        """As Celery's, of a tracked job with the reason in the status message of its task."""
        if run := self.request.get("harbor_run"):
            run.reason = f"{type(exc).__name__}: {exc}" if exc else "it asked for another try"
        return super().retry(args, kwargs, exc, **options)

    def apply_async(  # type: ignore[override]  # celery-types knows each of Celery's options by name
        self, args: Any = None, kwargs: Any = None, task_id: str | None = None, **options: Any
    ) -> Any:
        """A message of its own for another try is a turn, too: it waits, in a new revision, and its record says
        so before the message can be anywhere."""
        run = self.request.get("harbor_run")
        if run and task_id == run.id:
            self._wait_for_another_try(run, float(options.get("countdown") or 0))
            told = {header.NAME: self.request.get(header.NAME)}
            options["headers"] = {**(options.get("headers") or {}), **told}
        return super().apply_async(args, kwargs, task_id=task_id, **options)

    def _wait_for_another_try(self, run: Handle, delay: float) -> None:
        revision = job_records().settle(
            run.id, this_node.name, run.revision, Status.SCHEDULED, run.reason, delay=delay
        )
        if revision is None:
            raise Ignore
        reporter.put(Turn(run.id, run.task_id, revision, Status.SCHEDULED, run.reason))


def _after_asking(offer: Offer) -> tuple[Verdict, int]:
    found = known(offer.task_id)
    if found.is_over:
        return Verdict.OVER, offer.revision
    asked = replace(offer, revision=found.revision, runs=found.runs, published=0)
    return job_records().begin(asked, this_node.name)
