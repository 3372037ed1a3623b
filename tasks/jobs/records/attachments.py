"""Attachments: data that the message of a record carries, so that it is not lost with the process of the run.

A run that succeeds attaches its result for the next job of its chain. A run of which something is kept attaches
that, too (kept.py). A run that asks for another try attaches the arguments of that try, with the reason, unless
they are those of its first message. The numbers of a check-in are in check_in.py.

The arguments of another try stay in the record when that try begins, until a report has brought them into the
database (lua/_job.lua). What if the process that asked for the try dies, and the one that runs it as well, before
either has reported: recovery finds the arguments in the record.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from executions.status import Status
from executions.text import json_text
from tasks.jobs.celery_json import as_json
from tasks.jobs.records.check_in import BEFORE_CHECK_IN, CheckIn
from tasks.jobs.records.kept import Kept
from tasks.jobs.records.record import JobRecord

#: A message with a result: this prefix, and JSON.
RESULT = "result: "
#: A message with what is kept of the end: this prefix, and JSON of the parts of `Kept`, the message, and the
#: result for the next job, in a list, which is empty if there is none.
KEPT = "kept: "
#: A message with arguments: this prefix, and JSON of args, kwargs and the reason. Once the try runs, its check-in
#: follows, after a character that no JSON and no check-in contains. So no check-in can be taken for arguments.
AGAIN = "again: "
#: The most characters of JSON that are attached.
MAX_CHARACTERS = 60_000

Arguments = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True)
class Contents:
    """The parts of a record's message. `result` is None if there is none, `check_in` unless it runs."""

    message: str
    result: Any = None
    arguments: Arguments | None = None
    kept: Kept | None = None
    check_in: CheckIn | None = None


def text_of_result(result: Any) -> str:
    """Return the result as JSON. Raises ValueError if it cannot be attached."""
    try:
        text = json_text(as_json(result))
    except (TypeError, ValueError) as exc:
        raise ValueError(f"a chain hands on JSON, and it returned something else: {exc}") from exc
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it returned {len(text):,} characters, a chain hands on {MAX_CHARACTERS:,}")
    return text


def message_of_end(message: str, result: str | None, kept: Kept | None) -> str:
    """Return the message of the record of an ended run. `result` is JSON for the next job."""
    if kept:
        handed_on = [] if result is None else [json.loads(result)]
        return KEPT + json.dumps({**asdict(kept), "message": message, "handed_on": handed_on}, ensure_ascii=False)
    return message if result is None else RESULT + result


def message_with_arguments(arguments: Arguments, reason: str) -> str:
    """Return the message of a record with these arguments. Raises ValueError if they cannot be attached."""
    try:
        size = len(json_text(as_json([*arguments])))
    except TypeError as exc:
        raise ValueError(f"another try takes arguments that are JSON, and got others: {exc}") from exc
    if size > MAX_CHARACTERS:
        raise ValueError(f"another try takes arguments of {MAX_CHARACTERS:,} characters at most, and got {size:,}")
    return AGAIN + json_text(as_json([*arguments, reason]))


def arguments_alone(record: JobRecord) -> str:
    """Return the message of this record without a check-in if it has arguments of another try; else none."""
    return record.message.partition(BEFORE_CHECK_IN)[0] if contents_of(record).arguments else ""


def contents_of(record: JobRecord) -> Contents:
    """Split the message of this record. An attachment that another program has written may be unreadable; then the
    whole text is the message, because the status of the record counts still."""
    message, is_running = record.message, record.status == Status.RUNNING
    arguments: Arguments | None = None
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        if message.startswith(RESULT) and record.status == Status.SUCCESS:
            return Contents("", result=json.loads(message.removeprefix(RESULT)))
        if message.startswith(KEPT) and record.status in (Status.SUCCESS, Status.ERROR):
            parts = json.loads(message.removeprefix(KEPT))
            said, handed_on = parts.pop("message"), parts.pop("handed_on")
            return Contents(said, handed_on[0] if handed_on else None, kept=Kept(**parts))
        if message.startswith(AGAIN) and (not is_running or BEFORE_CHECK_IN in message):
            attached, _, said = message.partition(BEFORE_CHECK_IN)
            args, kwargs, reason = json.loads(attached.removeprefix(AGAIN))
            message, arguments = said if is_running else reason, None if record.is_final else (args, kwargs)
    check_in = CheckIn.read(message) if is_running else None
    return Contents(check_in.message if check_in else message, arguments=arguments, check_in=check_in)
