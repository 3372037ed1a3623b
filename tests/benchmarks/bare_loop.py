"""The bare loop: Harbor's way, four statements an execution, with nothing else around them.

No queue, no messages, no locks to take: what a worker could reach at the most if it went through
the executions one by one. Each statement commits on its own, as Harbor's loop does.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import psycopg

SELECT = "SELECT id, status, revision FROM execution WHERE id = %s"
COUNT = "SELECT status, count(*) FROM task WHERE execution_id = %s GROUP BY status"
# `end_time` is set here as well, and not by the next statement alone: a constraint of ours ties it
# to the status. That costs nothing.
UPDATE_STATUS = """
UPDATE execution SET status = %s, revision = revision + 1, update_time = now(), end_time = now()
WHERE id = %s AND revision = %s
"""
UPDATE_END = """
UPDATE execution SET end_time = (SELECT max(end_time) FROM task WHERE execution_id = %s)
WHERE id = %s
"""


def measure(url: str, executions: int, processes: int) -> float:
    """Executions a second that so many processes refresh together, over the ids from 1 on."""
    share = executions // processes
    start = time.time() + 2  # everybody has started and connected by then
    parts = [(url, 1 + n * share, (n + 1) * share, start) for n in range(processes)]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        ends = list(pool.map(refresh_one_by_one, *zip(*parts, strict=True)))
    return share * processes / (max(ends) - start)


def refresh_one_by_one(url: str, first: int, last: int, start: float) -> float:
    """Refresh the executions of these ids; returns when it was done."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT 1")
        time.sleep(max(0, start - time.time()))
        cursor = connection.cursor()
        for number in range(first, last + 1):
            _, _, revision = cursor.execute(SELECT, [number]).fetchone() or (0, "", 0)
            counts: dict[str, int] = dict(cursor.execute(COUNT, [number]).fetchall())
            cursor.execute(UPDATE_STATUS, [_status(counts), number, revision])
            cursor.execute(UPDATE_END, [number, number])
    return time.time()


def _status(counts: dict[str, int]) -> str:
    for status in ("Running", "Scheduled", "Pending"):
        if counts.get(status):
            return "Running"
    for status in ("Error", "Stopped"):
        if counts.get(status):
            return status
    return "Success"
