"""The options of a job's message, and the values that they take.

Celery checks none of them. So they are checked when a job is started, and when it asks for another try.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from celery.utils.time import maybe_iso8601, maybe_make_aware

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_number, is_text, is_whole, shown
from harbor_refresh.tasks.models.state import MAX_QUEUE

#: A year. A moment far beyond it is in no calendar.
MAX_SECONDS = 366 * 24 * 3600
#: A moment within these years can be converted to any time zone.
YEARS = range(1971, 9000)


@dataclass(frozen=True)
class Takes:
    """The values that an option takes. `what` describes them in an error."""

    what: str
    accepts: Callable[[Any], bool]


def refuse(owner: str, name: str, value: Any, takes: Takes) -> None:
    """Raise Refused unless the value is None or accepted."""
    if value is not None and not takes.accepts(value):
        raise Refused(f"{owner}: {name} takes {takes.what}, and got {shown(value)}")


def is_moment(value: Any) -> bool:
    """Whether it is a datetime, or text that Celery reads as one."""
    try:
        return isinstance(value, str | datetime) and moment_of(value).year in YEARS
    except (ValueError, TypeError, OverflowError, AttributeError):
        return False


def moment_of(value: str | datetime) -> datetime:
    """Return the moment as Celery reads it: without a time zone it is UTC."""
    moment = maybe_make_aware(maybe_iso8601(value))  # type: ignore[arg-type]  # None for empty text, an AttributeError
    return moment.astimezone(UTC)


LIMIT = Takes(
    f"a number of seconds above 0 and at most {MAX_SECONDS:,} (a year)",
    lambda value: is_number(value, 0, MAX_SECONDS) and value > 0,
)
NAME = Takes(f"text of 1 to {MAX_QUEUE} characters", lambda value: is_text(value, MAX_QUEUE, at_least=1))
MOMENT = Takes("a moment, as a datetime or ISO 8601 text", is_moment)
WITHIN_A_YEAR = Takes(
    "a moment at most a year from now, as a datetime or ISO 8601 text",
    lambda value: is_moment(value) and (moment_of(value) - datetime.now(UTC)).total_seconds() <= MAX_SECONDS,
)

#: The options that a job's message may have. Others are refused (UNTAKEN), because they would be lost when the job
#: is sent again.
OPTIONS = {
    "queue": NAME,
    "priority": Takes("a whole number from 0 to 9", lambda value: is_whole(value, 0, 9)),
    "countdown": Takes(
        f"a number of seconds from 0 to {MAX_SECONDS:,} (a year)", lambda value: is_number(value, 0, MAX_SECONDS)
    ),
    "eta": WITHIN_A_YEAR,
    "expires": Takes(f"{LIMIT.what}, or {MOMENT.what}", lambda value: LIMIT.accepts(value) or is_moment(value)),
    "time_limit": LIMIT,
    "soft_time_limit": LIMIT,
    "routing_key": NAME,
}
#: The options of a job that runs later. The row has its time.
LATER = ("countdown", "eta")
#: The metadata of a job: no option of its message, but the attributes of its task.
META = "meta"
#: What to use instead of an option that a job does not take.
UNTAKEN = {
    "link": "a chain runs one job after the other",
    "link_error": "on_error= of the execution is called when a job of it has failed",
    "chord": "on_success= of the execution is called when all jobs have succeeded",
    "headers": "give the job an argument, as in replicate.s(1, tenant=7)",
    "exchange": "queue or routing_key says where it waits",
}
#: The options of another try.
OF_RETRY = (*LATER, "max_retries", "throw")
TAKEN_BY_RETRY = "takes args, kwargs, exc, countdown, eta and max_retries"
#: The options that a task may set, and that break its messages if their value is invalid.
ON_THE_TASK = ("priority", "expires", "time_limit", "soft_time_limit")


def refuse_options(owner: str, options: Mapping[str, Any]) -> None:
    """Raise Refused if an option would break the message. The error names the option, what it takes and got."""
    for name, takes in OPTIONS.items():
        if name in options:
            refuse(owner, name, options[name], takes)


def refuse_options_of_task(task: Any) -> None:
    """Raise Refused if an option that the task sets would break all its messages."""
    refuse_options(task.name, {name: getattr(task, name, None) for name in ON_THE_TASK})
    of_autoretry = getattr(task, "retry_kwargs", None) or {}
    if others := sorted(of_autoretry.keys() - {*OF_RETRY, "args", "kwargs", "exc"}):
        raise Refused(f"{task.name}: retry_kwargs {TAKEN_BY_RETRY}; got {', '.join(others)}")


def refuse_options_of_retry(task: Any, options: Mapping[str, Any]) -> None:
    """Raise Refused for an option that another try does not take, and for a moment, or a default delay of the
    task, that would break the message."""
    owner = f"another try of {task.name}"
    if others := sorted(options.keys() - {*OF_RETRY}):
        raise Refused(f"{owner}: {TAKEN_BY_RETRY}; got {', '.join(others)}")
    has_delay = options.get("eta") or options.get("countdown") is not None
    given = {**options} if has_delay else {**options, "countdown": task.default_retry_delay}
    if is_number(given.get("countdown"), -MAX_SECONDS, 0):  # at once, as in Celery
        given["countdown"] = 0
    refuse_options(owner, given)


def refuse_untaken(owner: str, options: Mapping[str, Any]) -> None:
    """Raise Refused for an option that a job does not take, with what to use instead. Celery itself sets `task_id`
    in a chain or group; a job has an id of its own."""
    if others := sorted(options.keys() - {*OPTIONS, META, "task_id"}):
        why = f"{owner}: takes the options {', '.join([*OPTIONS, META])}; got {', '.join(others)}"
        raise Refused("; ".join([why, *(f"{name}: {UNTAKEN[name]}" for name in others if name in UNTAKEN)]))
