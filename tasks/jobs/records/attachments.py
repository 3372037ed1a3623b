"""Attachments: data that the message of a record carries, so that it is not lost with the process of the run.

A run that succeeds attaches its result for the next job of its chain. A run of which something is kept attaches
that, too (kept.py). A run that asks for another try attaches the number of that retry. The numbers of a check-in
are in check_in.py, the arguments of another try in arguments.py.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from harbor_refresh.executions.status import Status
from harbor_refresh.executions.text import json_text
from harbor_refresh.tasks.jobs.celery_json import as_json
from harbor_refresh.tasks.jobs.records.check_in import CheckIn
from harbor_refresh.tasks.jobs.records.kept import Kept
from harbor_refresh.tasks.jobs.records.record import JobRecord

#: A message with a result: this prefix, and JSON.
RESULT = "result: "
#: A message with what is kept of the end: this prefix, and JSON of the parts of `Kept`, the message, and the
#: result for the next job, in a list, which is empty if there is none.
KEPT = "kept: "
#: A message of a job that waits for another try: this prefix, the retries of that try, `|`, and the message.
RETRIES = "retries: "
#: The most retries that a message may have (../runtime/message_check.py).
MAX_RETRIES = 2**31 - 1
#: The most characters of JSON that are attached, and of arguments.
MAX_CHARACTERS = 60_000


@dataclass(frozen=True)
class Contents:
    """The parts of a record's message. `result` is None if there is none."""

    message: str
    result: Any = None
    kept: Kept | None = None
    retries: int = 0


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


def message_of_wait(message: str, retries: int) -> str:
    """Return the message of the record of a job that waits for another try."""
    return f"{RETRIES}{retries}|{message}" if retries else message


def contents_of(record: JobRecord) -> Contents:
    """Split the message of this record. An attachment that another program has written may be unreadable; then the
    whole text is the message, because the status of the record counts still."""
    message = record.message
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        if message.startswith(RESULT) and record.status == Status.SUCCESS:
            return Contents("", result=json.loads(message.removeprefix(RESULT)))
        if message.startswith(KEPT) and record.status in (Status.SUCCESS, Status.ERROR):
            parts = json.loads(message.removeprefix(KEPT))
            said, handed_on = parts.pop("message"), parts.pop("handed_on")
            return Contents(said, handed_on[0] if handed_on else None, kept=Kept(**parts))
        if message.startswith(RETRIES) and record.status == Status.SCHEDULED:
            retries, said = message.removeprefix(RETRIES).split("|", 1)
            return Contents(said, retries=min(int(retries), MAX_RETRIES))
    if record.status == Status.RUNNING:
        return Contents(CheckIn.read(message).message)
    return Contents(message)
