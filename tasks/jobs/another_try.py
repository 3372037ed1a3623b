"""Another try of a job: its arguments, its delay, and the record that the job waits for it."""

import inspect
from datetime import UTC, datetime
from typing import Any

from celery.exceptions import Ignore
from celery.utils.time import maybe_make_aware

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs.celery_json import native
from harbor_refresh.tasks.jobs.delivery import reporter
from harbor_refresh.tasks.jobs.handle import Handle
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.records.arguments import Arguments, text_of_arguments
from harbor_refresh.tasks.jobs.records.attachments import message_of_wait
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.jobs.runtime import current_runs
from harbor_refresh.tasks.queue.node import this_node


def merged(run: Any, request: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
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


def delay_of(options: dict[str, Any]) -> float:
    """Return the delay in seconds of a message with these options."""
    if eta := options.get("eta"):
        moment = datetime.fromisoformat(eta) if isinstance(eta, str) else eta
        return max(0.0, (maybe_make_aware(moment) - datetime.now(UTC)).total_seconds())
    return float(options.get("countdown") or 0)


def request_of(job: Handle, args: list[Any], kwargs: dict[str, Any]) -> str:
    """Return the JSON of these arguments of another try; empty if they are those of this try.

    Arguments that the job has changed in place may be too large for Redis. Then the message alone has them. Raises
    ValueError if they were given to `retry` and are too large.
    """
    if [args, kwargs] == native([job.given.args, job.given.kwargs]):
        return ""
    try:
        return text_of_arguments(args, kwargs)
    except ValueError:
        if job.gives_arguments:
            raise
        return ""


def wait_for_another_try(job: Handle, delay: float, args: Any, kwargs: Any, retries: int) -> tuple[int, int]:
    """Record that the job waits for another try with these arguments, which is its retry number `retries`. Return
    its new revision and that of its arguments. If Redis is away, this node takes a new name, so recovery releases
    its jobs."""
    run, given = job.run, job.given
    args, kwargs = list(args or ()), dict(kwargs or {})
    request = request_of(job, args, kwargs)
    job.waits_for_another_try = True
    current_runs.end(run)
    try:
        revision = job_records().settle(
            run,
            Status.SCHEDULED,
            message_of_wait(job.reason, retries),
            delay=delay,
            arguments=request,
            given=given.revision,
        )
    except QueueUnavailable as exc:
        this_node.renew()
        raise Ignore from exc
    if revision is None:
        raise Ignore
    asked = Arguments(args, kwargs, revision) if request else None
    reporter.put(JobReport.of_run(run, Status.SCHEDULED, revision, job.reason, arguments=asked, retries=retries))
    return revision, (asked or given).revision
