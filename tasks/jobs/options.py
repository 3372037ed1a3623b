"""What the options of a job's message take. Celery checks none of them, so they are checked where a job is started
and where it asks for another try; and by the worker that receives a message, which may come from anywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from celery.utils.time import maybe_iso8601, maybe_make_aware

from executions.errors import Refused
from executions.text import is_text, is_whole, shown
from tasks.jobs.lifecycle.job_creation import MAX_ATTEMPTS

LEAST_ATTEMPTS = 5
#: A year. Far beyond it are moments that no calendar has.
MAX_SECONDS = 366 * 24 * 3600
MAX_QUEUE = 255
#: A moment within these years can be told in any time zone.
YEARS = range(1971, 9000)


@dataclass(frozen=True)
class Takes:
    """`what` it takes, as an error says it."""

    what: str
    accepts: Callable[[Any], bool]


def refuse(owner: str, name: str, value: Any, takes: Takes) -> None:
    """Refused, unless it is None or what it takes."""
    if value is not None and not takes.accepts(value):
        raise Refused(f"{owner}: {name} takes {takes.what}, and got {shown(value)}")


def is_seconds(value: Any) -> bool:
    """From 0 to MAX_SECONDS. Neither infinity nor NaN is in that range."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


def is_moment(value: Any) -> bool:
    """A datetime, or text that Celery reads as one."""
    try:
        return isinstance(value, str | datetime) and moment_of(value).year in YEARS
    except (ValueError, TypeError, OverflowError, AttributeError):
        return False


def moment_of(value: str | datetime) -> datetime:
    """As Celery reads it: without a time zone it is UTC."""
    moment = maybe_make_aware(maybe_iso8601(value))  # type: ignore[arg-type]  # None for empty text, an AttributeError
    return moment.astimezone(UTC)


def _is_more_than_none(value: Any) -> bool:
    return is_seconds(value) and value > 0


def _is_later(value: Any) -> bool:
    return is_moment(value) and (moment_of(value) - datetime.now(UTC)).total_seconds() <= MAX_SECONDS


LIMIT = Takes(f"a number of seconds above 0 and at most {MAX_SECONDS:,} (a year)", _is_more_than_none)
NAME = Takes(f"text of 1 to {MAX_QUEUE} characters", lambda value: is_text(value, MAX_QUEUE, at_least=1))
MOMENT = Takes("a moment, as a datetime or ISO 8601 text", is_moment)
LATER = Takes("a moment at most a year from now, as a datetime or ISO 8601 text", _is_later)

#: What may be said of a job's message; the rest (links, callbacks) would be nobody's to repeat.
OPTIONS = {
    "queue": NAME,
    "priority": Takes("a whole number from 0 to 9", lambda value: is_whole(value, 0, 9)),
    "countdown": Takes(f"a number of seconds from 0 to {MAX_SECONDS:,} (a year)", is_seconds),
    "expires": Takes(
        f"{LIMIT.what}, or {MOMENT.what}", lambda value: _is_more_than_none(value) or is_moment(value)
    ),
    "time_limit": LIMIT,
    "soft_time_limit": LIMIT,
    "routing_key": NAME,
}
#: What a job may say of its next try, besides.
OF_A_RETRY = {**OPTIONS, "eta": LATER}
#: What may stand on the task, and would break whatever sends or receives its messages.
ON_THE_TASK = ("priority", "expires", "time_limit", "soft_time_limit")


def refuse_options(owner: str, options: Mapping[str, Any], known: Mapping[str, Takes] = OPTIONS) -> None:
    """Refused, if one of them would break its message: names the option, what it takes and what it got."""
    for name, takes in known.items():
        if name in options:
            refuse(owner, name, options[name], takes)


def refuse_options_of_task(task: Any) -> None:
    """The same of what stands on the task, where all its messages would break."""
    refuse_options(task.name, {name: getattr(task, name, None) for name in ON_THE_TASK})


def refuse_options_of_retry(task: Any, options: Mapping[str, Any]) -> None:
    """The same of what a job says of its next try, or its task says of all."""
    is_said = options.get("eta") or options.get("countdown") is not None
    delay = {} if is_said else {"countdown": task.default_retry_delay}
    refuse_options(f"another try of {task.name}", {**options, **delay}, OF_A_RETRY)


def attempts_for(max_retries: Any) -> int:
    """How often a job may begin whose task does not say: as often as its retries need. Without an end of them, the
    least holds."""
    is_number = isinstance(max_retries, int | float)
    return int(min(max(LEAST_ATTEMPTS, max_retries + 1), MAX_ATTEMPTS)) if is_number else LEAST_ATTEMPTS
