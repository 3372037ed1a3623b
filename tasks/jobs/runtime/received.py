"""Received: the first look at a message of a tracked job, in the main process of its worker.

Celery reads there what it needs, and expects each part to be what its own clients write. A time limit that is no
number ends that process; the broker then gives the message to another worker, and that one ends as well. So a
message that Celery could not use ends its job here, as Error, and goes no further.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from celery.app.task import Context
from celery.worker.strategy import default

from executions.errors import Refused
from executions.status import MAX_ID, MAX_REVISION
from executions.text import is_text, is_whole, refuse_nesting, shown
from tasks.jobs import header
from tasks.jobs.options import LATER, LIMIT, MOMENT, Takes, refuse, refuse_options_of_task
from tasks.jobs.runtime import dropped

log = logging.getLogger("harbor_refresh")

#: As the message that an error speaks of, in the status message of the task.
MESSAGE = "its message"
MAX_JOB = 255
#: More than this no counter of ours reaches.
MAX_COUNT = 2**31 - 1


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


TEXT = Takes("text", lambda value: isinstance(value, str))
COUNT = Takes(f"a whole number from 0 to {MAX_COUNT:,}", lambda value: is_whole(value, 0, MAX_COUNT))
FLAG = Takes("true or false", lambda value: isinstance(value, bool))
NOTHING = Takes("nothing", lambda value: False)

#: What Celery reads among the headers, in either process. None stands for what is not said.
HEADERS = {
    **dict.fromkeys(("shadow", "root_id", "parent_id", "group", "argsrepr", "kwargsrepr"), TEXT),
    **dict.fromkeys(("retries", "replaced_task_nesting"), COUNT),
    "group_index": COUNT,
    "ignore_result": FLAG,
    "eta": LATER,
    "expires": MOMENT,
    "timelimit": Takes("two limits", lambda value: isinstance(value, list | tuple) and len(value) == 2),
    "stamped_headers": Takes("a list of text", _is_list_of_text),
    "stamps": Takes("a mapping", lambda value: isinstance(value, dict)),
    "headers": Takes("a mapping", lambda value: isinstance(value, dict)),
}
#: Among what a message says besides arguments. A tracked job has none of them: they would be repeated with it.
LINKS = ("callbacks", "errbacks", "chain", "chord")
#: What a message says of a tracked job.
TOLD = {
    "task": Takes("the id of a task", lambda value: is_whole(value, 1, MAX_ID)),
    "revision": Takes("a revision", lambda value: is_whole(value, 0, MAX_REVISION)),
    "runs": COUNT,
    "followed": FLAG,
}
#: What it may say besides.
MAY_TELL = {"database": TEXT, "changed": FLAG}
#: Of a request in the process that runs the job. A header of that name would take the place of its own.
OF_A_REQUEST = {name for name in dir(Context) if callable(getattr(Context, name))} | {
    "called_directly",
    "is_eager",
    "harbor_handle",
}

Receive = Callable[..., Any]


def strategy(task: Any, app: Any, consumer: Any) -> Receive:
    """Celery's own, behind this look. The job is ended before its message is acknowledged: if the process dies in
    between, the message comes again and finds it ended.
    """
    receive = default(task, app, consumer)

    def look_and_receive(message: Any, body: Any, ack: Any, reject: Any, callbacks: Any, **options: Any) -> Any:
        try:
            refuse_unusable(task, message, body)
        except Exception as exc:
            why = (
                str(exc) if isinstance(exc, Refused) else f"{MESSAGE} cannot be read: {type(exc).__name__}: {exc}"
            )
            dropped.on_unusable(message.headers if body is None else body, why)
            reject(log, consumer.connection_errors, False)
        else:
            return receive(message, body, ack, reject, callbacks, **options)

    return look_and_receive


def refuse_unusable(task: Any, message: Any, body: Any) -> None:
    """Refused, or what the library raises that cannot decode it. `body` is that of the first protocol of Celery,
    which has no headers."""
    refuse_options_of_task(task)
    refuse_nesting(message.properties)
    if body is None:
        _refuse_headers(message.headers)
        _refuse_payload(message.payload, is_tracked=header.NAME in message.headers)
    else:
        refuse_nesting(body)
        _refuse_headers(body)
        _refuse_arguments(body.get("args", ()), body.get("kwargs", {}))


def _refuse_headers(headers: Mapping[str, Any]) -> None:
    refuse_nesting(headers)
    if not is_text(headers.get("id"), MAX_JOB, at_least=1):
        raise Refused(f"{MESSAGE}: id takes text of 1 to {MAX_JOB} characters, and got {shown(headers.get('id'))}")
    for name, value in headers.items():
        if name in OF_A_REQUEST:
            raise Refused(f"{MESSAGE}: a header {name} would take the place of what Celery has by that name")
        if takes := HEADERS.get(name):
            refuse(MESSAGE, name, value, takes)
    for name, limit in zip(("time_limit", "soft_time_limit"), headers.get("timelimit") or (), strict=False):
        refuse(MESSAGE, name, limit, LIMIT)
    for name in LINKS:
        refuse(MESSAGE, name, headers.get(name), NOTHING)
    if header.NAME in headers:
        _refuse_told(headers[header.NAME])


def _refuse_told(told: Any) -> None:
    if not isinstance(told, dict):
        raise Refused(f"{MESSAGE}: {header.NAME} takes a mapping, and got {shown(told)}")
    for name, takes in TOLD.items():
        if not takes.accepts(told.get(name)):
            raise Refused(f"{MESSAGE}: {header.NAME}.{name} takes {takes.what}, and got {shown(told.get(name))}")
    for name, takes in MAY_TELL.items():
        refuse(MESSAGE, f"{header.NAME}.{name}", told.get(name), takes)


def _refuse_payload(payload: Any, *, is_tracked: bool) -> None:
    refuse_nesting(payload)
    if not isinstance(payload, list | tuple) or len(payload) != 3:
        raise Refused(f"{MESSAGE}: takes a list of arguments, keywords and links, and got {shown(payload)}")
    args, kwargs, links = payload
    _refuse_arguments(args, kwargs)
    if links is not None and (not isinstance(links, dict) or links.keys() - {*LINKS}):
        raise Refused(f"{MESSAGE}: takes links of the names {', '.join(LINKS)}, and got {shown(links)}")
    if is_tracked and links:
        for name in LINKS:
            refuse(MESSAGE, name, links.get(name) or None, NOTHING)


def _refuse_arguments(args: Any, kwargs: Any) -> None:
    if not isinstance(args, list | tuple):
        raise Refused(f"{MESSAGE}: takes arguments in a list, and got {shown(args)}")
    if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
        raise Refused(f"{MESSAGE}: takes keywords in a mapping, and got {shown(kwargs)}")
