"""Signatures of tracked jobs: each is checked, and read as the job that is recorded."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from celery.canvas import Signature
from celery.exceptions import NotRegistered

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import shown
from harbor_refresh.tasks.jobs.limits import key_of_limit
from harbor_refresh.tasks.jobs.starting.declarations import JobTask, refuse_arguments
from harbor_refresh.tasks.jobs.starting.options import (
    META,
    OPTIONS,
    refuse_options,
    refuse_options_of_task,
    refuse_untaken,
)
from harbor_refresh.tasks.jobs.starting.records import LATER, NewJob, NewNeed
from harbor_refresh.tasks.models.job import Takes

TAKES = (
    "takes signatures of tracked jobs, as in jobs=[replicate.s(1), replicate.s(2)], and chains, groups and chords "
    "of them"
)
ONE_EACH = "write one signature for each call, as in jobs=[replicate.s(1), replicate.s(2)]"
#: Signatures of Celery's own that stand for many calls of one task.
MANY_CALLS = ("celery.map", "celery.starmap", "celery.chunks")


def job_of(
    signature: Any, checked: set[str], takes: Takes = Takes.NOTHING, needs: Sequence[NewNeed] = ()
) -> NewJob:
    """Return the job of this signature. `checked` are the names of tasks that are checked already."""
    if not isinstance(signature, Signature):
        raise Refused(f"{TAKES}, and got {shown(signature)} among them")
    if signature.task in MANY_CALLS:
        kind = signature.task.removeprefix("celery.")
        raise Refused(f"{TAKES}, and no {kind}: {ONE_EACH}")
    task = registered(signature)
    if not isinstance(task, JobTask):
        raise Refused(f"{signature.task} is no tracked job: write @app.task(base=TrackedJob)")
    if task.name not in checked:
        refuse_options_of_task(task)
        checked.add(task.name)
    first = [] if takes == Takes.NOTHING else [None]
    try:
        refuse_arguments(task, (*first, *signature.args), signature.kwargs)
    except TypeError as exc:
        raise Refused(f"job {task.name}: {exc}; the job itself is its first argument, and is not given") from exc
    return NewJob(
        name=task.name,
        args=signature.args,
        kwargs=signature.kwargs,
        options=_options_of(signature, task),
        max_attempts=task.max_attempts,
        is_unique=task.unique,
        meta=_meta_of(signature, task),
        needs=needs,
        takes=takes,
        limit_key=key_of_limit(task, signature.args, signature.kwargs),
    )


def registered(signature: "Signature[Any]") -> Any:
    """Return the task of a signature. Raises Refused if this process does not know it."""
    try:
        return signature.type
    except NotRegistered:
        raise Refused(
            f"no task {shown(signature.task)} is registered here: import the module that has it"
        ) from None


def _meta_of(signature: "Signature[Any]", task: JobTask) -> dict[str, Any]:
    meta = signature.options.get(META)
    if meta is not None and not isinstance(meta, dict):
        raise Refused(f"{task.name}: meta takes a dict, as in .set(meta={{'layer': 7}}), and got {shown(meta)}")
    return meta or {}


def _options_of(signature: "Signature[Any]", task: JobTask) -> dict[str, Any]:
    """Return the options as JSON. A countdown or an eta of None is left out."""
    refuse_untaken(task.name, signature.options)
    options = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in signature.options.items()
        if name in OPTIONS and not (name in LATER and value is None)
    }
    refuse_options(task.name, options)
    if options.keys() >= {*LATER}:
        raise Refused(f"{task.name}: takes a countdown or an eta, and got both")
    hard, soft = (options.get(name) or getattr(task, name) for name in ("time_limit", "soft_time_limit"))
    if hard and soft and soft > hard:
        raise Refused(
            f"{task.name}: soft_time_limit takes at most the time_limit, {shown(hard)}, and got {shown(soft)}"
        )
    return options
