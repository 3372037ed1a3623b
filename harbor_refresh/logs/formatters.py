"""The two formats of a log line. Each writes one line for an event, whatever its message holds."""

import json
import logging
import re
from datetime import UTC, datetime
from socket import gethostname
from typing import Any

from celery._state import get_current_worker_task  # Celery's own log takes it from there, too

from harbor_refresh.logs import context
from harbor_refresh.tasks.broker.redaction import redacted
from harbor_refresh.tasks.queue.node import this_node

#: The fields of `extra=` that are written, and no others: a library may add arguments of a task to its records.
IDS = ("execution_id", "execution_ids", "task_id", "job_id", "claim", "subscription", "change")
HOST = gethostname()
LONGEST_ARGUMENTS = 120
LONGEST_MESSAGE = 8_000
LONGEST_TRACEBACK = 32_000
#: Characters that would end the line, or that a terminal would obey.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _cut(text: str, most: int) -> str:
    """Hide secrets, and then cut: the rest of a secret that was cut would not be known as one."""
    return redacted(text[: 2 * most])[:most]


def _traceback(text: str) -> str:
    return redacted(text[-2 * LONGEST_TRACEBACK :])[-LONGEST_TRACEBACK:]


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def _message(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except Exception as exc:  # a wrong number of arguments; write the line all the same
        message = f"{record.msg} ({type(exc).__name__} in its arguments)"
    return _cut(message, LONGEST_MESSAGE)


def _ids(record: logging.LogRecord) -> dict[str, Any]:
    """The ids of this line: those of the request and the Celery task of this thread, those of Celery's own lines,
    and those of `extra=`. The arguments of a subtask of ours name its executions; those of a tracked job are left
    out, because they may hold secrets."""
    found: dict[str, Any] = {}
    if request := context.request_id.get():
        found["request"] = request
    if task := get_current_worker_task():
        found |= {"celery_task": task.name, "celery_id": task.request.id, "node": this_node.name}
        shown = task.request.get("argsrepr")
        if task.name.startswith("tasks.") and isinstance(shown, str) and shown not in ("()", ""):
            found["arguments"] = shown[:LONGEST_ARGUMENTS]
    data = getattr(record, "data", None)
    if isinstance(data, dict) and record.name.startswith("celery."):
        names = {"celery_id": data.get("id"), "celery_task": data.get("name")}
        found |= {name: str(value) for name, value in names.items() if value}
    given = {name: getattr(record, name) for name in IDS if getattr(record, name, None) is not None}
    return found | {name: value if isinstance(value, int) else _text(value) for name, value in given.items()}


def _text(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [one if isinstance(one, int) else _cut(str(one), 200) for one in value[:20]]
    return _cut(str(value), 200)


class AsWarning(logging.Filter):
    """Make a fault of a client a warning, without a traceback through code that is not at fault."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = None
        return True


class JSONLines(logging.Formatter):
    """One JSON object a line. `line` is the text before its values are put in, as log.md lists it, so that
    lines can be grouped by it."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            **_ids(record),
            "host": HOST,
            "process": record.process,
        }
        if record.args and isinstance(record.msg, str):
            event["line"] = record.msg
        if record.exc_info:
            event["exception"] = _traceback(self.formatException(record.exc_info))
        text = json.dumps(event, ensure_ascii=False, default=str)
        return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # JSON allows some that end a line


class TextLines(logging.Formatter):
    """`time level logger: message`, then the ids in brackets; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{self.formatTime(record)} {record.levelname:<7} {record.name}: {_one_line(_message(record))}"
        ids = _ids(record)
        if ids:
            head += " [" + " ".join(f"{name}={_one_line(str(value))}" for name, value in ids.items()) + "]"
        if record.exc_info:
            head += "\n" + _traceback(self.formatException(record.exc_info))
        return head
