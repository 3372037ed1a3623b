"""Start: signatures of tracked jobs become an execution."""

from collections.abc import Iterable, Sequence
from typing import Any

from celery import group
from celery.canvas import Signature, _chain

from executions.errors import Refused
from executions.usecases.jobs import NewJob
from executions.usecases.jobs import start as record
from tasks.jobs.execution import TrackedExecution
from tasks.jobs.tracked import TrackedJob

#: What may be said of a job's message; the rest (links, callbacks) would be nobody's to repeat.
OPTIONS = ("queue", "priority", "countdown", "expires", "time_limit", "soft_time_limit", "routing_key")


def start(
    vendor_type: str,
    *,
    jobs: "Iterable[Signature[Any]] | group",
    vendor_id: int = 0,
    trigger: str = "MANUAL",
    extra_attrs: dict[str, Any] | None = None,
) -> TrackedExecution:
    """Start an execution of these jobs: signatures, chains of them, or a group.

    Jobs and execution are recorded in one transaction, and published after its commit.
    """
    signatures = _without_options(jobs).tasks if isinstance(jobs, group) else jobs
    chains = [_chain_of(one) for one in signatures]
    started = record(vendor_type, chains, vendor_id=vendor_id, trigger=trigger, extra_attrs=extra_attrs or {})
    return TrackedExecution.objects.get(pk=started.execution.pk)


def _chain_of(signature: Any) -> Sequence[NewJob]:
    if not isinstance(signature, Signature):
        raise Refused(f"takes signatures of tracked jobs, as in replicate.s(1), and got {signature!r}")
    steps = _without_options(signature).tasks if isinstance(signature, _chain) else [signature]
    return [_job_of(step, is_first=number == 0) for number, step in enumerate(steps)]


def _job_of(signature: Any, *, is_first: bool) -> NewJob:
    task = signature.type
    if not isinstance(task, TrackedJob):
        raise Refused(f"{signature.task} is no tracked job: write @app.task(base=TrackedJob)")
    others = signature.options.keys() - {*OPTIONS, "task_id"}
    if others:
        raise Refused(f"{signature.task}: takes the options {', '.join(OPTIONS)}; got {', '.join(sorted(others))}")
    return NewJob(
        name=signature.task,
        args=signature.args,
        kwargs=dict(signature.kwargs),
        options={name: value for name, value in signature.options.items() if name in OPTIONS},
        max_attempts=task.max_attempts,
        is_unique=task.unique,
        takes_result=not is_first and not signature.immutable,
    )


def _without_options(several: Any) -> Any:
    """What is said of a chain or a group would be said of none of its jobs."""
    if options := several.options.keys() - {"task_id"}:
        raise Refused(f"{several}: takes options on each of its jobs; got {', '.join(sorted(options))} on all")
    return several
