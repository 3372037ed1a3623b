"""Another try of a job: its arguments, its delay, and the record that the job waits for it."""

import inspect
from datetime import UTC, datetime
from typing import Any

from celery.exceptions import Ignore
from celery.utils.time import maybe_make_aware

from executions.errors import QueueUnavailable
from executions.status import Status
from tasks.jobs.delivery import reporter
from tasks.jobs.handle import Handle
from tasks.jobs.lifecycle.job_report import JobReport
from tasks.jobs.records.arguments import Arguments, text_of_arguments
from tasks.jobs.records.records import job_records
from tasks.jobs.runtime import current_runs
from tasks.queue.node import this_node


def plain(args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    return list(args or ()), dict(kwargs or {})


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


def wait_for_another_try(job: Handle, delay: float, changed: tuple[list[Any], dict[str, Any]] | None) -> int:
    """Record that the job waits for another try, and return its new revision. `changed`: its arguments, if they
    are not those of this try. If Redis is away, this node takes a new name, so recovery releases its jobs."""
    run = job.run
    text = text_of_arguments(*changed) if changed else ""
    job.waits_for_another_try = True
    current_runs.end(run)
    try:
        revision = job_records().settle(run, Status.SCHEDULED, job.reason, delay=delay, arguments=text)
    except QueueUnavailable as exc:
        this_node.renew()
        raise Ignore from exc
    if revision is None:
        raise Ignore
    arguments = Arguments(*changed, revision) if changed else None
    reporter.put(JobReport.of_run(run, Status.SCHEDULED, revision, job.reason, arguments=arguments))
    return revision
