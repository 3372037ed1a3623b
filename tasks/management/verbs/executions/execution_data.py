"""An execution as data for programs: the fields that the API answers with."""

from typing import Any

from executions.models import Execution


def as_data(execution: Execution) -> dict[str, Any]:
    return {
        "id": execution.pk,
        "vendor_type": execution.vendor_type,
        "vendor_id": execution.vendor_id,
        "status": execution.status,
        "status_message": execution.status_message,
        "trigger": execution.trigger,
        "extra_attrs": execution.extra_attrs,
        "start_time": execution.start_time.isoformat(),
        "update_time": execution.update_time.isoformat(),
        "end_time": execution.end_time and execution.end_time.isoformat(),
        "revision": execution.revision,
    }


def ended(execution: Execution) -> str:
    return f"{execution.end_time:%Y-%m-%d %H:%M:%S}" if execution.end_time else ""
