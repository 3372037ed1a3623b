"""The arguments that a run asks for, for the tries of its job after it: `job.retry(args=…)`.

They have the revision of the first of these tries. Up to three places have a copy: the message of that try, the
key `arguments` in Redis until the database has them, and the row of the job. The copy with the highest revision
counts. So it does not matter in which order copies come: a late report, an older message and a Redis that came
back older bring no earlier arguments back. Nor does it matter how the run ends, or whether its job is stopped.

In Redis they are one line of text: `TASK|REVISION|JSON of args and kwargs`.
"""

import json
from dataclasses import dataclass
from typing import Any, Self

from harbor_refresh.executions.status import MAX_ID, MAX_REVISION
from harbor_refresh.executions.text import json_text
from harbor_refresh.tasks.jobs.celery_json import as_json
from harbor_refresh.tasks.jobs.records.attachments import MAX_CHARACTERS


@dataclass(frozen=True)
class Arguments:
    """`revision` is 0 for those that the job was started with."""

    args: list[Any]
    kwargs: dict[str, Any]
    revision: int

    def __post_init__(self) -> None:
        if not isinstance(self.args, list) or not isinstance(self.kwargs, dict):
            raise TypeError("arguments are a list and a mapping")


@dataclass(frozen=True)
class Request:
    """The job of this task asked for these arguments."""

    job: str
    task_id: int
    arguments: Arguments

    @classmethod
    def read(cls, job: str, text: str) -> Self | None:
        """Parse what Redis has; None if it is unreadable, which means another program wrote it."""
        try:
            task, revision, arguments = text.split("|", 2)
            args, kwargs = json.loads(arguments)
            request = cls(job, int(task), Arguments(args, kwargs, int(revision)))
            is_ours = request.text == text
        except (ValueError, TypeError, RecursionError):
            return None
        is_in_bounds = 0 < request.task_id <= MAX_ID and 0 < request.arguments.revision <= MAX_REVISION
        return request if is_ours and is_in_bounds else None

    @property
    def text(self) -> str:
        arguments = self.arguments
        return f"{self.task_id}|{arguments.revision}|{text_of_arguments(arguments.args, arguments.kwargs)}"


def text_of_arguments(args: list[Any], kwargs: dict[str, Any]) -> str:
    """Return the JSON of these arguments. Raises ValueError if another try cannot have them."""
    try:
        text = json_text(as_json([args, kwargs]))
    except TypeError as exc:
        raise ValueError(f"another try takes arguments that are JSON, and got others: {exc}") from exc
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"another try takes arguments of {MAX_CHARACTERS:,} characters at most, and got {len(text):,}"
        )
    return text
