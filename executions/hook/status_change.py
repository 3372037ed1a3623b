"""A status change as Harbor's job service sends it, read from the body of a request and checked.

    {"job_id": "…", "status": "Running", "check_in": "…", "metadata": {"id": "…", "revision": 1731492000,
     "upstream_job_id": "…", "check_in_at": 1731492001, …}, "status_message": "…"}

`metadata` has more fields there (name, kind, cron_spec …), which are not read. `status_message` and `task_id` are
our additions.
"""

import json
from dataclasses import dataclass
from typing import Any

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.lifecycle.creation import MAX_JOB_ID
from harbor_refresh.executions.status import CODES, MAX_ID, MAX_REVISION
from harbor_refresh.executions.text import is_text, is_whole, refuse_nesting, shown

#: In bytes. A status change of Harbor takes about 500, and a check-in carries what a job has to say.
MAX_BODY = 1_000_000
MAX_VALUES = 10_000


@dataclass(frozen=True)
class StatusChange:
    """`check_in` is empty unless the job has something to say, and then its status does not count. `upstream_id`
    is the periodic job of which this job is a firing. `task_id`: the task that a signed body names, or 0."""

    job_id: str
    status: str
    revision: int = 0
    message: str | None = None
    check_in: str = ""
    check_in_at: int = 0
    upstream_id: str = ""
    task_id: int = 0

    @property
    def code(self) -> int:
        return CODES[self.status]

    @property
    def is_firing(self) -> bool:
        return bool(self.upstream_id) and self.upstream_id != self.job_id


def read(body: bytes) -> StatusChange:
    """Read a status change. Raises Refused with the reason if it cannot be used."""
    change = _read(_json(body))
    if not change.check_in and change.status not in CODES:
        raise Refused(f"unknown status {shown(change.status)}; takes {', '.join(CODES)}")
    return change


def _json(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
        refuse_nesting(data, at_most=MAX_VALUES)
    except RecursionError:
        raise Refused("the body is nested too deeply") from None
    except ValueError as exc:  # no JSON, no UTF-8, a number of 5,000 digits, too many values
        raise Refused(f"the body cannot be read as JSON: {shown(str(exc))}") from None
    if not isinstance(data, dict):
        raise Refused(f"the body takes an object, and got {shown(data)}")
    return data


def _read(data: dict[str, Any]) -> StatusChange:
    """Read the fields. An absent field has the default that Go's decoder would give it."""
    metadata = data.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Refused(f"metadata takes an object, and got {shown(metadata)}")
    return StatusChange(
        job_id=_text(data, "job_id", MAX_JOB_ID),
        status=_text(data, "status"),
        revision=_whole(metadata, "revision", MAX_REVISION),
        message=_text(data, "status_message") if data.get("status_message") is not None else None,
        check_in=_text(data, "check_in"),
        check_in_at=_whole(metadata, "check_in_at", MAX_REVISION),
        upstream_id=_text(metadata, "upstream_job_id", MAX_JOB_ID),
        task_id=_whole(data, "task_id", MAX_ID),
    )


def _text(data: dict[str, Any], name: str, at_most: int = MAX_BODY) -> str:
    value = data.get(name)
    if value is None:
        return ""
    if not is_text(value, at_most):
        limit = f"of at most {at_most} characters " if at_most < MAX_BODY else ""
        raise Refused(f"{name} takes text {limit}without NUL, and got {shown(value)}")
    return str(value)


def _whole(data: dict[str, Any], name: str, at_most: int) -> int:
    value = data.get(name)
    if value is None:
        return 0
    if not is_whole(value, 0, at_most):
        raise Refused(f"{name} takes a whole number from 0 to {at_most}, and got {shown(value)}")
    return int(value)
