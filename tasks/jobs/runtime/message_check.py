"""Check the message of a tracked job in the main process of its worker, before Celery reads it.

Celery expects each part of a message to be what its own clients write. A time limit that is no number ends the
main process; the broker then gives the message to another worker, which ends as well. So a message that Celery
cannot use ends its job here, as Error, and goes no further.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from celery.app.task import Context
from celery.worker.strategy import default

from executions.errors import Refused
from executions.status import MAX_ID, MAX_REVISION
from executions.text import is_text, is_whole, refuse_nesting, shown
from tasks.jobs import message_header
from tasks.jobs.options import LIMIT, MOMENT, WITHIN_A_YEAR, Takes, refuse, refuse_options_of_task
from tasks.jobs.runtime import celery_events

log = logging.getLogger("harbor_refresh")

#: The name of the message in an error, which becomes the status message of the task.
MESSAGE = "its message"
MAX_JOB = 255
#: No counter of ours gets larger.
MAX_COUNT = 2**31 - 1


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


TEXT = Takes("text", lambda value: isinstance(value, str))
COUNT = Takes(f"a whole number from 0 to {MAX_COUNT:,}", lambda value: is_whole(value, 0, MAX_COUNT))
FLAG = Takes("true or false", lambda value: isinstance(value, bool))
NOTHING = Takes("nothing", lambda value: False)

#: The headers that Celery reads, in either process. None means that the header is not set.
HEADERS = {
    **dict.fromkeys(("shadow", "root_id", "parent_id", "group", "argsrepr", "kwargsrepr"), TEXT),
    **dict.fromkeys(("retries", "replaced_task_nesting"), COUNT),
    "group_index": COUNT,
    "ignore_result": FLAG,
    "eta": WITHIN_A_YEAR,
    "expires": MOMENT,
    "timelimit": Takes("two limits", lambda value: isinstance(value, list | tuple) and len(value) == 2),
    "stamped_headers": Takes("a list of text", _is_list_of_text),
    "stamps": Takes("a mapping", lambda value: isinstance(value, dict)),
    "headers": Takes("a mapping", lambda value: isinstance(value, dict)),
}
#: The links of a message. A tracked job takes none of them, because each of its runs would repeat them.
LINKS = ("callbacks", "errbacks", "chain", "chord")
#: The parts that the header of a tracked job must have (message_header.py).
REQUIRED = {
    "task": Takes("the id of a task", lambda value: is_whole(value, 1, MAX_ID)),
    "revision": Takes("a revision", lambda value: is_whole(value, 0, MAX_REVISION)),
    "runs": COUNT,
    "followed": FLAG,
}
#: The parts that it may have besides.
OPTIONAL = {"database": TEXT, "arguments": REQUIRED["revision"]}
#: The names in Celery's request, in the process that runs the job. A header of such a name would replace it.
OF_A_REQUEST = {name for name in dir(Context) if callable(getattr(Context, name))} | {
    "called_directly",
    "is_eager",
    "harbor_handle",
}

Receive = Callable[..., Any]


def strategy(task: Any, app: Any, consumer: Any) -> Receive:
    """Return Celery's own strategy behind this check. The job is ended before its message is acknowledged: if the
    process dies in between, the message comes again and finds the job ended."""
    receive = default(task, app, consumer)

    def check_and_receive(message: Any, body: Any, ack: Any, reject: Any, callbacks: Any, **options: Any) -> Any:
        try:
            refuse_unusable(task, message, body)
        except Exception as exc:
            why = (
                str(exc) if isinstance(exc, Refused) else f"{MESSAGE} cannot be read: {type(exc).__name__}: {exc}"
            )
            celery_events.on_unusable(message.headers if body is None else body, why)
            reject(log, consumer.connection_errors, False)
        else:
            return receive(message, body, ack, reject, callbacks, **options)

    return check_and_receive


def refuse_unusable(task: Any, message: Any, body: Any) -> None:
    """Raise Refused if Celery cannot use the message, or the error of the library that cannot decode it. `body` is
    that of Celery's first protocol, which has no headers."""
    refuse_options_of_task(task)
    refuse_nesting(message.properties)
    if body is None:
        _refuse_headers(message.headers)
        _refuse_payload(message.payload, is_tracked=message_header.NAME in message.headers)
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
    if message_header.NAME in headers:
        _refuse_header(headers[message_header.NAME])


def _refuse_header(header: Any) -> None:
    whole = message_header.NAME
    if not isinstance(header, dict):
        raise Refused(f"{MESSAGE}: {whole} takes a mapping, and got {shown(header)}")
    for name, takes in REQUIRED.items():
        if not takes.accepts(header.get(name)):
            raise Refused(f"{MESSAGE}: {whole}.{name} takes {takes.what}, and got {shown(header.get(name))}")
    for name, takes in OPTIONAL.items():
        refuse(MESSAGE, f"{whole}.{name}", header.get(name), takes)


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
