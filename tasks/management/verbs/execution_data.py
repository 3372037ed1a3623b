"""An execution as data for programs: the fields that the API answers with."""

from datetime import datetime
from typing import Any

from harbor_refresh.executions.models import Execution


def as_data(execution: Execution) -> dict[str, Any]:
    return {
        "id": execution.pk,
        "vendor_type": execution.vendor_type,
        "vendor_id": execution.vendor_id,
        "vendor_key": execution.vendor_key,
        "status": execution.status,
        "status_message": execution.status_message,
        "trigger": execution.trigger,
        "extra_attrs": execution.extra_attrs,
        "start_time": _as_text(execution.start_time),
        "update_time": _as_text(execution.update_time),
        "end_time": _as_text(execution.end_time),
        "revision": execution.revision,
    }


def _as_text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def shown(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else ""
