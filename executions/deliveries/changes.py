"""Read what is told of status changes: the execution, its counts, and its first failures."""

import json
from collections.abc import Mapping, Sequence

from harbor_refresh.executions.database import absence_translated, run
from harbor_refresh.executions.deliveries.claims import Claimed
from harbor_refresh.executions.news.handlers import Change, Failure

MAX_FAILURES = 5
MAX_MESSAGE = 500
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
    known = {row[0]: row[1:] for row in rows}
    return {one.id: _change(one, known) for one in claimed}


def _change(one: Claimed, known: Mapping[int, tuple[object, ...]]) -> Change:
    told = {
        "id": one.message_id,
        "execution_id": one.execution_id,
        "vendor_type": one.vendor_type,
        "revision": one.revision,
        "from_status": one.from_status,
        "to_status": one.to_status,
        "at": one.changed_at,
    }
    if one.execution_id not in known:
        return Change(**told, is_deleted=True)  # type: ignore[arg-type]
    vendor_id, vendor_key, message, trigger, attributes, start, update, end, counts, failures = known[
        one.execution_id
    ]
    return Change(
        **told,  # type: ignore[arg-type]
        vendor_id=vendor_id,  # type: ignore[arg-type]
        vendor_key=vendor_key,  # type: ignore[arg-type]
        status_message=message,  # type: ignore[arg-type]
        trigger=trigger,  # type: ignore[arg-type]
        extra_attrs=None if attributes is None else json.loads(str(attributes)),
        start_time=start,  # type: ignore[arg-type]
        update_time=update,  # type: ignore[arg-type]
        end_time=end,  # type: ignore[arg-type]
        counts=json.loads(str(counts)),
        first_failures=tuple(Failure(**failure) for failure in json.loads(str(failures))),
    )
