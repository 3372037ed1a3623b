"""The statuses, their codes, and which of them are final. All other code reads this one table."""

from django.db import models


class Status(models.TextChoices):
    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    STOPPED = "Stopped"
    ERROR = "Error"
    SUCCESS = "Success"


FINAL_CODE = 3
CODES: dict[str, int] = {
    Status.PENDING: 0,
    Status.SCHEDULED: 1,
    Status.RUNNING: 2,
    Status.STOPPED: FINAL_CODE,
    Status.ERROR: FINAL_CODE,
    Status.SUCCESS: FINAL_CODE,
}
FINAL = tuple(status for status in Status if CODES[status] == FINAL_CODE)


def is_final(status: str) -> bool:
    """Whether a status is final. A status this release does not know (an older one wrote 'Succeed') is final."""
    return CODES.get(status, FINAL_CODE) == FINAL_CODE


#: (revision, code) are compared as the one number `revision * 4 + code`, which must fit a bigint.
LAST_REVISION = 2**61 - 1
#: The highest revision that a program may report. The task's job can still run again, in a higher one.
MAX_REVISION = 2**61 - 2**32
MAX_ID = 2**63 - 1
#: The most earlier runs that a report may state: far below the limit of the column that counts them.
MAX_EARLIER_RUNS = 1_000_000
MAX_VENDOR = 64
