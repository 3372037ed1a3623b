"""The hook: reports of jobs are posted over HTTP, for workers that must not write tasks themselves.

Speaks the protocol of Harbor's job service and its core: `POST {url}{task id}` with a status change as JSON. Owns
HTTP and its errors. Reports that were not accepted are returned to the caller, which tries them again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport

#: One call takes at most this long, for any number of reports.
SECONDS = 10.0
#: Refusals that may pass, because they concern the target or our settings. Any other 4xx is a refusal for good;
#: 404 is one after PATIENCE, because the target may not have committed the row of the task yet.
MAY_PASS = frozenset({401, 403, 408, 425, 429})
NOT_FOUND = 404
#: Seconds for which a report is tried again although the target knows no such task.
PATIENCE = 300.0
#: The most reports of which this process remembers since when the target knows no such task.
MOST_REMEMBERED = 10_000
#: The most characters of a redirect's location in an error.
MAX_LOCATION = 300


@dataclass
class Posted:
    """`accepted` reports are delivered; `unwanted` ones, with the reason, never will be; `left` ones may be."""

    accepted: list[JobReport] = field(default_factory=list)
    unwanted: list[tuple[JobReport, str]] = field(default_factory=list)
    left: list[JobReport] = field(default_factory=list)
    why_left: str = ""


class Hook:
    def __init__(self, url: str, authorization: str, timeout: float) -> None:
        self._url = url
        headers = {"Authorization": authorization} if authorization else {}
        self._client = httpx2.Client(timeout=timeout, headers=headers, follow_redirects=False)
        self._unknown_since: dict[tuple[str, int, str], float] = {}

    def post(self, reports: Sequence[JobReport]) -> Posted:
        """Send one request for each report, in the order given.

        1. An answer of 2xx: the report is accepted.
        2. A refusal for good, for example because its task is gone: the report is unwanted. So is a report that
           has been answered by 404 for PATIENCE seconds.
        3. A refusal that may pass: the report is left, and the next one is tried, because only this one may be
           concerned. A redirect is such a refusal: it means that our setting is wrong, and is not followed.
        4. No answer: the target is away, so this report and all following ones are left.

        Refused or unanswered reports move to the back of the retry list, so they do not block other reports.
        """
        posted = Posted()
        refused: list[JobReport] = []
        until = time.monotonic() + SECONDS
        for position, report in enumerate(reports):
            if time.monotonic() > until:
                posted.left, posted.why_left = [*reports[position:], *refused], "it answers too slowly"
                return posted
            try:
                answer = self._client.post(f"{self._url}{report.task_id}", json=body_of(report))
            except httpx2.HTTPError as exc:
                posted.left = [*reports[position + 1 :], *refused, report]
                posted.why_left = f"{type(exc).__name__}: {exc}"
                return posted
            if answer.is_success:
                posted.accepted.append(report)
            elif answer.status_code == NOT_FOUND and not self._is_unknown_for_long(report):
                refused.append(report)
                posted.why_left = _why_left(answer)
            elif answer.is_client_error and answer.status_code not in MAY_PASS:
                posted.unwanted.append((report, f"the hook answered {answer.status_code}"))
            else:
                refused.append(report)
                posted.why_left = _why_left(answer)
        posted.left = refused
        return posted

    def _is_unknown_for_long(self, report: JobReport) -> bool:
        """Note when the target first answered that it knows no such task; return whether that is PATIENCE ago.

        Each process notes it for itself. The processes of all workers repeat a report in turns, and the first that
        has waited long enough gives it up for all. What if the process ends: another one begins to wait.
        """
        key, now = (report.job, report.revision, report.status), time.monotonic()
        since = self._unknown_since.setdefault(key, now)
        if now - since >= PATIENCE:
            del self._unknown_since[key]
            return True
        if len(self._unknown_since) > MOST_REMEMBERED:
            del self._unknown_since[next(iter(self._unknown_since))]
        return False

    def close(self) -> None:
        self._client.close()


def _why_left(answer: httpx2.Response) -> str:
    why = f"it answered {answer.status_code}"
    if 300 <= answer.status_code < 400:
        location = answer.headers.get("Location", "")[:MAX_LOCATION]
        why += f", a redirect to {location!r}, which is not followed: change REFRESH_REPORT_URL"
    return why


def body_of(report: JobReport) -> dict[str, Any]:
    """Return the body that Harbor's core reads; `status_message` is an addition that other readers may ignore."""
    metadata = {"id": report.job, "status": report.status, "revision": report.revision}
    body = {"job_id": report.job, "status": report.status, "metadata": metadata}
    return body | ({"status_message": report.message} if report.message else {})


@cache
def hook() -> Hook:
    """Return the hook of this process, built from the settings. It connects on first use."""
    conf = refresh_settings()
    return Hook(conf.report_url, conf.report_authorization, pacing.REPORT_TIMEOUT_SECONDS)
