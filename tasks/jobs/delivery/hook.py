"""The hook: reports of jobs are posted over HTTP, for workers that must not write tasks themselves.

Speaks the protocol of Harbor's job service and its core: `POST {url}{task id}` with a status change as JSON. Owns
HTTP and its errors. Reports that were not accepted are returned to the caller, which tries them again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from tasks.conf import refresh_settings
from tasks.jobs.lifecycle.job_report import JobReport

#: One call takes at most this long, for any number of reports.
SECONDS = 10.0
#: Refusals that may pass, because they concern the target or our settings. Any other 4xx is a refusal for good.
MAY_PASS = frozenset({401, 403, 408, 425, 429})
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
        self._client = httpx.Client(timeout=timeout, headers=headers, follow_redirects=False)

    def post(self, reports: Sequence[JobReport]) -> Posted:
        """Send one request for each report, in the order given.

        1. An answer of 2xx: the report is accepted.
        2. A refusal for good, for example because its task is gone: the report is unwanted.
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
            except httpx.HTTPError as exc:
                posted.left = [*reports[position + 1 :], *refused, report]
                posted.why_left = f"{type(exc).__name__}: {exc}"
                return posted
            if answer.is_success:
                posted.accepted.append(report)
            elif answer.is_client_error and answer.status_code not in MAY_PASS:
                posted.unwanted.append((report, f"the hook answered {answer.status_code}"))
            else:
                refused.append(report)
                posted.why_left = _why_left(answer)
        posted.left = refused
        return posted

    def close(self) -> None:
        self._client.close()


def _why_left(answer: httpx.Response) -> str:
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
    return Hook(conf.report_url, conf.report_authorization, conf.report_timeout)
