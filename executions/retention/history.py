"""The length of a history: of executions that stay, the oldest status changes are deleted."""

from datetime import timedelta

from harbor_refresh.executions.database import run

#: The newest status changes of an execution that stay, whatever their age: more than a person reads.
KEPT = 1_000
PAGE = 5_000
BATCH = 1_000


def shorten(age: timedelta, after_id: int) -> tuple[int, int | None]:
    """Delete the oldest changes of the next page of executions; return how many, and the id to go on after.

    A history has one row for each revision, so only executions with more than KEPT revisions are looked at. The
    rest of a history is as complete as before: what is deleted is noted in the same statement. What if two
    processes do it at once: the second finds nothing left of what the first deleted.
    """
    _, after, deleted = run("shorten_history", after_id=after_id, page=PAGE, kept=KEPT, age=age, batch=BATCH)[0]
    return deleted, after
