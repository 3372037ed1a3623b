"""The hook: reports of jobs that go over HTTP, for workers that are not to write tasks themselves.

Speaks what Harbor's job service says to its core: `POST {url}{task id}` with a status change as JSON. Owns HTTP
and its errors; what has not landed is for its caller, who comes again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import httpx

from tasks.conf import refresh_settings

#: One call takes no longer than that, however many it is given.
SECONDS = 10.0
#: Answers that speak of the other side or of our settings. Any other 4xx says that nobody wants this change.
LATER = frozenset({401, 403, 408, 425, 429})
#: So much of where a redirect points is told.
MAX_LOCATION = 300


class Change(Protocol):
    """What the hook is told of a job: its status in this revision (run), and the reason."""

    @property
    def job(self) -> str: ...
    @property
    def task_id(self) -> int: ...
    @property
    def revision(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def message(self) -> str: ...


C = TypeVar("C", bound=Change)


@dataclass
class Delivered(Generic[C]):
    """`landed` changes were accepted; `unwanted` ones will never be, with the reason; `left` ones may be later."""

    landed: list[C] = field(default_factory=list)
    unwanted: list[tuple[C, str]] = field(default_factory=list)
    left: list[C] = field(default_factory=list)
    why_left: str = ""


class Hook:
    def __init__(self, url: str, authorization: str, timeout: float) -> None:
        self._url = url
        headers = {"Authorization": authorization} if authorization else {}
        self._client = httpx.Client(timeout=timeout, headers=headers, follow_redirects=False)

    def deliver(self, changes: Sequence[C]) -> Delivered[C]:
        """Send one request for each change, in the order given.

        1. An answer of 2xx: the change has landed.
        2. A refusal for good, for example because its task is gone: the change is unwanted.
        3. A refusal that may pass: the change is left, and the next one is tried, because only this one may be
           concerned. A redirect is such a refusal: it means that our setting is wrong, and is not followed.
        4. No answer: the target is away, so this change and all following ones are left.

        Refused or unanswered changes move to the back of the retry list, so they do not block the others.
        """
        done = Delivered[C]()
        refused: list[C] = []
        until = time.monotonic() + SECONDS
        for position, change in enumerate(changes):
            if time.monotonic() > until:
                done.left, done.why_left = [*changes[position:], *refused], "it answers too slowly"
                return done
            try:
                answer = self._client.post(f"{self._url}{change.task_id}", json=body_of(change))
            except httpx.HTTPError as exc:
                done.left = [*changes[position + 1 :], *refused, change]
                done.why_left = f"{type(exc).__name__}: {exc}"
                return done
            if answer.is_success:
                done.landed.append(change)
            elif answer.is_client_error and answer.status_code not in LATER:
                done.unwanted.append((change, f"the hook answered {answer.status_code}"))
            else:
                refused.append(change)
                done.why_left = _why_left(answer)
        done.left = refused
        return done


def _why_left(answer: httpx.Response) -> str:
    told = f"it answered {answer.status_code}"
    if 300 <= answer.status_code < 400:
        location = answer.headers.get("Location", "")[:MAX_LOCATION]
        told += f", a redirect to {location!r}, which is not followed: change REFRESH_REPORT_URL"
    return told


def body_of(change: Change) -> dict[str, Any]:
    """Return the body that Harbor's core reads; `status_message` is an addition that other readers may ignore."""
    metadata = {"id": change.job, "status": change.status, "revision": change.revision}
    body = {"job_id": change.job, "status": change.status, "metadata": metadata}
    return body | ({"status_message": change.message} if change.message else {})


@cache
def hook() -> Hook:
    """Return the hook of this process, built from the settings. It connects on first use."""
    conf = refresh_settings()
    return Hook(conf.report_url, conf.report_authorization, conf.report_timeout)
