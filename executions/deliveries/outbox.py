"""The outbox: status changes that are not told yet become deliveries."""

from django.db import transaction

from harbor_refresh.executions import crash_points
from harbor_refresh.executions.database import absence_translated, run

#: Changes in one transaction. It is short, and 200 subscriptions write 200 rows for each.
BATCH = 1_000


def write_deliveries() -> int:
    """Write the deliveries of all untold changes; return how many changes were told.

    1. Take the lock of the outbox. If another process has it, that process does the work.
    2. In the next statement write the deliveries of a batch and mark its changes as told, in one transaction.

    What if the process dies before the commit: nothing happened, and the lock is free. What if two do it at once:
    only one has the lock. A change that commits just after the holder has looked waits for the next pass: its
    writer asks for one after its commit.
    """
    count = 0
    while True:
        with absence_translated(), transaction.atomic():
            if not run("lock_outbox")[0][0]:
                return count
            told: int = run("write_deliveries", most=BATCH)[0][0]
            if told:
                crash_points.reach("listed", ())
        count += told
        if told < BATCH:
            return count
