"""Callbacks of an execution: plain Celery tasks that are called when it ends, or when its first job has failed.

`tasks.run_handlers` calls them in the process of a worker, as it calls the handlers of
executions/news/handlers.py. They are no messages of their own: a message may be lost with its broker or its
worker, and a delivery that is not recorded is made again."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery import current_app
from celery.canvas import Signature

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import Callback
from harbor_refresh.executions.news.callbacks import MAX_HANDLER, Call
from harbor_refresh.executions.news.handlers import Change
from harbor_refresh.executions.status import FINAL, Status
from harbor_refresh.executions.text import shown
from harbor_refresh.tasks.jobs.starting.celery_json import native
from harbor_refresh.tasks.jobs.starting.declarations import JobTask, refuse_generator, registered, stored_arguments
from harbor_refresh.tasks.jobs.tracked_execution import TrackedExecution

#: When each is called, by its name in `start`: at these ends. Without one, at the first failed job.
STATUSES: dict[str, Sequence[Status]] = {
    "on_first_error": (),
    "on_success": (Status.SUCCESS,),
    "on_error": (Status.ERROR,),
    "on_complete": FINAL,
}
TAKES = "takes the signature of a plain Celery task, such as notify.s(), or a list of them"


@dataclass(frozen=True)
class EndedExecution:
    """The first argument of a callback: which execution has ended, and how. For `on_first_error` the execution has
    not ended: `status` is Running, and `revision` is 0."""

    change: Change

    @property
    def id(self) -> str:
        """An id of this end. It is the same if the callback is called again."""
        return self.change.id

    @property
    def execution_id(self) -> int:
        return self.change.execution_id

    @property
    def status(self) -> str:
        return self.change.to_status

    @property
    def revision(self) -> int:
        return self.change.revision

    @property
    def execution(self) -> TrackedExecution | None:
        """The execution as it is now, with the operations on its jobs; None if it was deleted."""
        return TrackedExecution.objects.filter(pk=self.change.execution_id).first()


def callbacks_of(given: dict[str, Any]) -> list[Callback]:
    """Return the callbacks of these signatures, by their names in `start`. Raises Refused for what a worker could
    not call."""
    given = {name: several for name, several in given.items() if several is not None}
    lists = {name: several if isinstance(several, list | tuple) else [several] for name, several in given.items()}
    return [_callback(name, one) for name, several in lists.items() for one in several]


def _callback(name: str, signature: Any) -> Callback:
    if not isinstance(signature, Signature):
        raise Refused(f"{name} {TAKES}, and got {shown(signature)}")
    try:
        task = registered(signature)
    except Refused as exc:
        raise Refused(f"{name}: {exc}") from None
    function = getattr(task, "_orig_run", task.run)  # autoretry_for wraps the function
    options = ", ".join(sorted(signature.options.keys() - {"task_id"}))
    for is_refused, why in (
        (isinstance(task, JobTask), f"{TAKES}; {task.name} is a tracked job: start it in a plain task"),
        (task.name.startswith("celery."), f"{TAKES}; {task.name.removeprefix('celery.')} is none"),
        (len(task.name) > MAX_HANDLER, f"takes a task with a name of at most {MAX_HANDLER} characters"),
        (
            inspect.iscoroutinefunction(function),
            f"takes a plain function, or one that starts a job, and {task.name} is an `async def`",
        ),
        (options, f"takes no options, because {task.name} is not sent; got {options}"),
    ):
        if is_refused:
            raise Refused(f"{name} {why}")
    refuse_generator(task.name, function)
    takes_change = not signature.immutable
    try:
        inspect.signature(task.run).bind(*[None] * takes_change, *signature.args, **signature.kwargs)
    except TypeError as exc:
        raise Refused(f"{name}: {task.name} takes the execution before its own arguments: {exc}") from exc
    args, kwargs = stored_arguments(f"{name}: {task.name}", signature.args, signature.kwargs)
    statuses = [str(one) for one in STATUSES[name]]
    return Callback(handler=task.name, statuses=statuses, args=args, kwargs=kwargs, takes_change=takes_change)


def find(name: str) -> Call | None:
    """Return how to call the task of this name, in this process; None if it is not registered here."""
    task = current_app.tasks.get(name)
    if task is None:
        return None

    def call(change: Change, callback: Callback) -> None:
        first = [EndedExecution(change)] if callback.takes_change else []
        args, kwargs = native([callback.args, callback.kwargs])
        task(*first, *args, **kwargs)

    return call
