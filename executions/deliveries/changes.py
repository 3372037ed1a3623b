"""Read what is told of status changes: the execution, its counts, and its first failures."""

import json
from collections.abc import Sequence
from typing import Any

from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.deliveries.claims import Claimed
from harbor_refresh.executions.news.handlers import Change, Failure

MAX_FAILURES = 5
MAX_MESSAGE = 500
#: What read_changes.sql returns after the id, as fields of a Change.
COLUMNS = (  # noqa: SIM905  # a list would be ten lines
    "vendor_id vendor_key status_message trigger extra_attrs start_time update_time end_time counts first_failures"
).split()
#: Longer extra_attrs are left out of a notification.
MAX_ATTRIBUTES = 10_000


def read_changes(claimed: Sequence[Claimed]) -> dict[int, Change]:
    """Return the change of each delivery, by the delivery's id, with one statement for all of them.

    Status, revision and time are those of the change; all else is as it is now. Of an execution that was deleted
    only the change is known.
    """
    with absence_translated():
        rows = run(
            "read_changes",
            ids=sorted({one.execution_id for one in claimed}),
            most=MAX_FAILURES,
            most_text=MAX_MESSAGE,
            most_attributes=MAX_ATTRIBUTES,
        )
    known = {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in rows}
    return {one.id: _change(one, known.get(one.execution_id)) for one in claimed}


def _change(one: Claimed, known: dict[str, Any] | None) -> Change:
    told: dict[str, Any] = {}
    if known is not None:
        attributes, failures = known["extra_attrs"], json.loads(known["first_failures"])
        told = known | {
            "extra_attrs": None if attributes is None else json.loads(attributes),
            "counts": json.loads(known["counts"]),
            "first_failures": tuple(Failure(**failure) for failure in failures),
        }
    return Change(
        id=one.message_id,
        execution_id=one.execution_id,
        vendor_type=one.vendor_type,
        revision=one.revision,
        from_status=one.from_status,
        to_status=one.to_status,
        at=one.changed_at,
        is_deleted=known is None,
        **told,
    )
