"""A job as it is given: what its task declares (JobTask), its signature, and the NewJob that is recorded for it.

What Celery does not check is checked here: an error says what to write instead.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from celery import Task
from celery.canvas import Signature
from celery.exceptions import NotRegistered

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import MAX_JSON, is_whole, json_text, shown
from harbor_refresh.tasks.jobs.limits import key_of_limit
from harbor_refresh.tasks.jobs.starting.celery_json import as_json
from harbor_refresh.tasks.jobs.starting.options import (
    LATER,
    META,
    OPTIONS,
    refuse_options,
    refuse_options_of_task,
    refuse_untaken,
)
from harbor_refresh.tasks.models.job import Job, JobInput

LEAST_ATTEMPTS, MAX_ATTEMPTS = 5, 32_767
LAZY = "a job is no generator; without `yield` it runs to its end"
TAKES = (
    "takes signatures of tracked jobs, as in jobs=[replicate.s(1), replicate.s(2)], and chains, groups and chords "
    "of them"
)
TAKES_JSON = f"takes arguments that are JSON of at most {MAX_JSON:,} bytes"
OTHER_TYPES = "Give a dataclass as dataclasses.asdict(value), a row as its key, or register the type with kombu"


class JobTask(Task):  # type: ignore[type-arg]
    """What a tracked job says of itself when it is started. tracked.py has how it runs, and describes these."""

    abstract = True
    unique = False
    keep_result = False
    concurrency: int | None = None
    rate: str | None = None
    key: Callable[[Any], Any] | None = None
    #: Whether arguments are checked against the function: what Celery's `typing` says, which counts no handle.
    checks_arguments = False

    @property
    def max_attempts(self) -> int:
        retries = self.max_retries, (getattr(self, "retry_kwargs", None) or {}).get("max_retries")
        most = max((one for one in retries if isinstance(one, int | float)), default=0)
        return int(min(max(LEAST_ATTEMPTS, most + 1), MAX_ATTEMPTS))


@dataclass(frozen=True)
class NewNeed:
    """A job needs the one at this place of its part, which comes before it."""

    place: int
    even_if_failed: bool = False


@dataclass(frozen=True)
class NewJob:
    """A job to be recorded. `takes` is what comes before its own arguments, of the jobs that it `needs`. `meta`
    becomes the attributes of its task. `limit_key`: its key in the limit of its task (jobs/limits.py)."""

    name: str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    max_attempts: int = LEAST_ATTEMPTS
    is_unique: bool = False
    needs: Sequence[NewNeed] = ()
    takes: JobInput = JobInput.NOTHING
    meta: dict[str, Any] = field(default_factory=dict)
    limit_key: str | None = None
    job_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def key(self) -> str | None:
        """The key of a unique job: equal for jobs with the same name and arguments."""
        if not self.is_unique:
            return None
        text = json.dumps([self.name, list(self.args), self.kwargs], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


#: Jobs that belong together, such as those of a chain: each comes after those that it needs.
Part = Sequence[NewJob]


def stored(job: NewJob) -> NewJob:
    """Return the job with its arguments as they are stored. Raises Refused if it cannot be."""
    if job.is_unique and job.takes != JobInput.NOTHING:
        raise Refused(
            f"job {job.name}: is unique and takes the result of the job before it, which is not known yet"
        )
    args, kwargs = stored_arguments(f"job {job.name}", job.args, job.kwargs, job.options)
    return replace(job, args=args, kwargs=kwargs)


def stored_arguments(
    owner: str, args: Sequence[Any], kwargs: Mapping[str, Any], *beside: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as they are stored, with what is stored beside them. Raises Refused, with the argument
    that cannot be."""
    values: list[Any] = []
    for place, value in [*enumerate(args, 1), *kwargs.items()]:
        try:
            values.append(as_json(value))
        except (TypeError, ValueError) as exc:
            way_out = f". {OTHER_TYPES}" if isinstance(exc, TypeError) else ""
            raise Refused(f"{owner}: {TAKES_JSON}; argument {place!r}: {exc}{way_out}") from exc
    found = values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True))
    try:
        json_text([*found, *beside])
    except (TypeError, ValueError) as exc:
        raise Refused(f"{owner}: {TAKES_JSON}: {exc}") from exc
    return found


MAX_NAME = Job._meta.get_field("name").max_length or 0


def job_of(signature: Any, takes: JobInput = JobInput.NOTHING, needs: Sequence[NewNeed] = ()) -> NewJob:
    """Return the job of this signature. Raises Refused if it cannot be sent or run."""
    if not isinstance(signature, Signature):
        raise Refused(f"{TAKES}, and got {shown(signature)} among them")
    task = registered(signature)
    if not isinstance(task, JobTask):
        raise Refused(f"{signature.task} is no tracked job: write @app.task(base=TrackedJob) and def it(job, ...)")
    refuse_options_of_task(task)
    if len(task.name) > MAX_NAME:
        raise Refused(f"job {shown(task.name)}: a job takes a name of at most {MAX_NAME} characters")
    if not is_whole(task.max_attempts, 1, MAX_ATTEMPTS):
        takes_number = f"max_attempts takes a whole number from 1 to {MAX_ATTEMPTS:,}"
        raise Refused(f"job {task.name}: {takes_number}, and got {shown(task.max_attempts)}")
    first = [] if takes == JobInput.NOTHING else [None]
    try:
        refuse_arguments(task, (*first, *signature.args), signature.kwargs)
    except TypeError as exc:
        raise Refused(f"job {task.name}: {exc}") from exc
    meta = signature.options.get(META)
    if meta is not None and not isinstance(meta, dict):
        raise Refused(f"{task.name}: meta takes a dict, as in .set(meta={{'layer': 7}}), and got {shown(meta)}")
    return NewJob(
        name=task.name,
        args=signature.args,
        kwargs=signature.kwargs,
        options=_options_of(signature, task),
        max_attempts=task.max_attempts,
        is_unique=task.unique,
        meta=meta or {},
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


def _options_of(signature: "Signature[Any]", task: JobTask) -> dict[str, Any]:
    """Return the options as JSON. A countdown or an eta of None is left out."""
    refuse_untaken(task.name, signature.options)
    options = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in signature.options.items()
        if name in OPTIONS and not (name in LATER and value is None)
    }
    refuse_options(task.name, options)
    return options


def refuse_generator(name: str, function: Any) -> None:
    """Raise Refused if the function is a generator function: a worker would run none of its code."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{name} is a generator: {LAZY}")


def refuse_default_of_handle(task: type[Task]) -> None:  # type: ignore[type-arg]
    """Raise Refused if the parameter that gets the handle has a default, and so is meant for an argument. One that
    is called `job` is not."""
    if not inspect.isfunction(task.run):
        return
    spec = inspect.getfullargspec(task.run)
    own = spec.args[_is_bound(task) :]
    if own and own[0] != "job" and len(spec.defaults or ()) >= len(own):
        raise Refused(f"{task.name}: `{own[0]}` has a default, and would get the handle: begin with `job`")


def _is_bound(task: type[Task]) -> bool:  # type: ignore[type-arg]
    return not isinstance(inspect.getattr_static(task, "run"), staticmethod)


def checked_result(result: Any) -> Any:
    """Return the result. Raises TypeError if it is a coroutine or a generator, because no code has run yet."""
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("it returned a coroutine, which nothing runs: write `await` where it is made")
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"it returned a generator, which nothing runs: {LAZY}")
    return result


def refuse_arguments(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError if the function does not take these arguments after the handle. It is Celery's own check, so
    `typing=False` on the task, and `strict_typing=False` on the app, switch it off."""
    if task.checks_arguments and (check := getattr(task, "__header__", None)):
        try:
            check(None, *args, **kwargs)
        except TypeError as exc:
            way_out = "instead of self: remove bind=True" if _is_bound(type(task)) else "which is passed for you"
            raise TypeError(f"{exc}; the job itself is its first argument, {way_out}") from None
