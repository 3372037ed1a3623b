"""Whether this process can send webhooks (it needs the extra `http`), and what a receiver's answer means."""

import _thread
import random
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from time import time
from types import BuiltinFunctionType

from django.utils.http import parse_http_date_safe

from harbor_refresh.executions.models import Delivery
from harbor_refresh.executions.models.notifications import State
from harbor_refresh.executions.news.deliveries.claims import Result
from harbor_refresh.executions.text import made_storable

NEEDED = ("httpcore2", "standardwebhooks")
#: Refusals that pass when the receiver has the new secret. They do not say whether the receiver works.
OF_SECRET = frozenset({401, 403})
#: Refusals that may pass. Any other 4xx is final.
MAY_PASS = OF_SECRET | {408, 409, 425, 429}
#: The longest delay doubles from the first to the last.
FIRST_DELAY = 5.0
MAX_DELAY = 86_400.0
MAX_ERROR = 500


@cache
def is_installed() -> bool:
    return all(find_spec(name) for name in NEEDED)


def has_green_threads() -> bool:
    """Whether threads are greenlets (gevent). While the event loop of the sender waits, every other greenlet would
    seem to run inside it, and Django would refuse it the database."""
    return not isinstance(_thread.start_new_thread, BuiltinFunctionType)


def can_send() -> bool:
    return is_installed() and not has_green_threads()


@dataclass(frozen=True)
class Answer:
    """The status of an answer and what is read of it; or no status, and why there was no answer."""

    status: int | None
    error: str = ""
    retry_after: str = ""

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def result(claimed: Delivery, answer: Answer) -> Result:
    """Judge an answer: 2xx is delivered, 4xx is final unless it may pass, all else is tried again."""
    status = answer.status
    if answer.is_good:
        return Result(claimed, State.DELIVERED, answered=True)
    error = made_storable(answer.error)[:MAX_ERROR]
    if status is not None and 400 <= status < 500 and status not in MAY_PASS:
        return Result(claimed, State.DEAD, error, answered=True)
    delay = max(backoff(claimed.attempts), seconds_of(answer.retry_after))
    return Result(claimed, State.PENDING, error, delay, answered=None if status in OF_SECRET else False)


def backoff(attempt: int) -> float:
    """Return the delay after this attempt. It is random, so that what failed together does not return together,
    and at least half of the longest, because a retry at once fails like the attempt before it."""
    longest = min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(attempt - 1, 40))
    return random.uniform(longest / 2, longest)  # noqa: S311 - a delay is no secret


def seconds_of(retry_after: str) -> float:
    """Read a Retry-After, seconds or a date; a day at most, and 0 if it cannot be read."""
    text = retry_after.strip()[:64]
    if text.isascii() and text.isdigit():
        return min(MAX_DELAY, float(text))
    at = parse_http_date_safe(text)
    return min(MAX_DELAY, max(0.0, at - time())) if at else 0.0
