"""Our rows of executions that a running Harbor has deleted. Its deletes neither see nor wait for them."""

from harbor_refresh.executions.database import run

PAGE = 5_000


def forget(after_id: int) -> tuple[int, int | None]:
    """Delete such rows among the next page of executions; return how many, and the id to go on after.

    What if two processes do it at once, or Harbor deletes meanwhile: the next sweep finds what is left.
    """
    looked_at, last_id, deleted = run("forget_orphans", after_id=after_id, page=PAGE)[0]
    return deleted, last_id if looked_at == PAGE else None
