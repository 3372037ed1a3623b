"""Validate a message in the main process of its worker, before Celery reads it (guard.py).

Celery expects each part of a message to be what its own clients write. A time limit that is no number ends the
main process; the broker then gives the message to another worker, which ends as well. The check refuses what
would break a worker, for any task. What a tracked job runs is in its row, whatever its message says.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any
from uuid import UUID

from celery.app.task import Context

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.executions.text import is_text, is_whole, refuse_nesting, shown
from harbor_refresh.tasks.jobs.starting.options import MOMENT, Takes, refuse

#: The header of a job's message: which run of which task. The row knows all else.
HEADER = "harbor_job"
#: No counter of ours gets larger.
MAX_COUNT = 2**31 - 1
#: The name of the message in an error, which becomes the status message of the task.
MESSAGE = "its message"
MAX_JOB = 255
#: Python can add as many seconds to a moment.
MAX_LIMIT = 10**15


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(is_one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(is_one, value))


def _is_signature(value: Any) -> bool:
    """Without one of these parts Celery fails where nothing catches it, and never acknowledges the message."""
    parts = {"task": str, "args": list | tuple, "options": dict}
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in parts.items())


def _is_limit(value: Any) -> bool:
    return isinstance(value, int | float) and (0 <= value < MAX_LIMIT or value == inf)


TEXT = Takes("text", _is_text)
NAME = Takes("text, a number or a UUID", lambda value: isinstance(value, str | int | UUID))
COUNT = Takes(f"a whole number from 0 to {MAX_COUNT:,}", lambda value: is_whole(value, 0, MAX_COUNT))
MAPPING = Takes("a mapping", lambda value: isinstance(value, dict))
SIGNATURES = Takes("a list of signatures", _list_of(_is_signature))
A_LIMIT = Takes("a number of seconds", _is_limit)

#: The links of a message, to the tasks after it.
LINKS = {
    **dict.fromkeys(("callbacks", "errbacks", "chain"), SIGNATURES),
    "chord": Takes("a signature", _is_signature),
}
#: The headers that Celery reads, in either process. None means that the header is not set.
HEADERS = {
    **LINKS,
    **dict.fromkeys(("shadow", "argsrepr", "kwargsrepr"), TEXT),
    **dict.fromkeys(("root_id", "parent_id", "group"), NAME),
    **dict.fromkeys(("retries", "replaced_task_nesting", "group_index"), COUNT),
    **dict.fromkeys(("eta", "expires"), MOMENT),
    "timelimit": Takes("two limits", lambda value: isinstance(value, list | tuple) and len(value) == 2),
    "stamped_headers": Takes("a list of text", _list_of(_is_text)),
    **dict.fromkeys(("stamps", "headers"), MAPPING),
}
LIMITS = ("time_limit", "soft_time_limit")
#: The names in Celery's request, in the process that runs the job. A header of such a name would replace it.
OF_A_REQUEST = {name for name in dir(Context) if callable(getattr(Context, name))} | {
    "called_directly",
    "is_eager",
    "harbor_handle",
}


def header_of(task_id: int, number: int) -> dict[str, Any]:
    return {HEADER: {"task": task_id, "run": number}}


def run_of(header: Any) -> tuple[int, int] | None:
    """Return the task and the run. None if the header, which may hold anything, names none."""
    if not isinstance(header, dict):
        return None
    task, number = header.get("task"), header.get("run")
    return (task, number) if is_whole(task, 1, MAX_ID) and is_whole(number, 0, MAX_COUNT) else None  # type: ignore[return-value]


def fields_of(message: Any) -> Mapping[str, Any]:
    """Return what Celery takes for the headers of a message. Those of its first protocol are in the body, and
    headers beside it replace them. Raises Refused if the message names no task, and any error of the library that
    cannot decode it."""
    fields: dict[str, Any] = message.headers
    if "task" not in fields:
        payload = message.payload
        fields = {**payload, **fields} if isinstance(payload, dict) else {}
    if not isinstance(fields.get("task"), str):
        raise Refused(f"{MESSAGE} names no task")
    return fields


def refuse_unusable(task: Any, message: Any) -> None:
    """Raise Refused if Celery cannot use the message, or the error of the library that cannot decode it. `task` is
    None if the worker knows no task of that name."""
    fields = fields_of(message)
    refuse_nesting(message.properties)
    _refuse_fields(fields)
    if task is not None:  # a limit that the task sets would break all its messages
        for name in LIMITS:
            refuse(task.name, name, getattr(task, name, None), A_LIMIT)
    payload = message.payload
    refuse_nesting(payload)
    if HEADER not in fields and isinstance(payload, dict) and "args" in payload:  # the first protocol, or both
        _refuse_fields({**payload, **fields})
        _refuse_arguments(payload["args"], payload.get("kwargs", {}))
    else:
        _refuse_payload(payload)


def _refuse_fields(fields: Mapping[str, Any]) -> None:
    refuse_nesting(fields)
    job = fields.get("id")
    if not is_text(str(job) if NAME.accepts(job) else job, MAX_JOB, at_least=1):
        raise Refused(f"{MESSAGE}: id takes text of 1 to {MAX_JOB} characters, and got {shown(job)}")
    for name, value in fields.items():
        if name in OF_A_REQUEST:
            raise Refused(f"{MESSAGE}: a header {name} would take the place of what Celery has by that name")
        if name in HEADERS:
            refuse(MESSAGE, name, value, HEADERS[name])
    for name, limit in zip(LIMITS, fields.get("timelimit") or (), strict=False):
        refuse(MESSAGE, name, limit, A_LIMIT)
    if HEADER in fields and run_of(header := fields[HEADER]) is None:
        takes = "takes the id of a task and the number of a run"
        raise Refused(f"{MESSAGE}: {HEADER} {takes}, and got {shown(header)}")


def _refuse_payload(payload: Any) -> None:
    if not isinstance(payload, list | tuple) or len(payload) != 3:
        raise Refused(f"{MESSAGE}: takes a list of arguments, keywords and links, and got {shown(payload)}")
    args, kwargs, links = payload
    _refuse_arguments(args, kwargs)
    if links is None:
        return
    if (
        not isinstance(links, dict)
        or not all(isinstance(name, str) for name in links)
        or links.keys() & OF_A_REQUEST
    ):
        raise Refused(f"{MESSAGE}: takes links of the names {', '.join(LINKS)}, and got {shown(links)}")
    for name, takes in LINKS.items():
        refuse(MESSAGE, name, links.get(name) or None, takes)


def _refuse_arguments(args: Any, kwargs: Any) -> None:
    if not isinstance(args, list | tuple):
        raise Refused(f"{MESSAGE}: takes arguments in a list, and got {shown(args)}")
    if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
        raise Refused(f"{MESSAGE}: takes keywords in a mapping, and got {shown(kwargs)}")
