"""The memory of Redis, noted in the database, so that a Redis with older data is noticed.

A Redis comes back with older data from a snapshot, or as a replica that had not received everything. It holds past
messages and records, and lacks newer ones. Each publication, and each pass of recovery, advances the memory of
Redis and notes its value in the database. A Redis that is behind the note begins a new epoch, as an empty one
does; then recovery looks up what it may have lost.
"""

from dataclasses import dataclass

from harbor_refresh.executions.database import absence_translated
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.records import own_database
from harbor_refresh.tasks.jobs.records.records import Memory, job_records
from harbor_refresh.tasks.models.state import RedisMemory


@dataclass(frozen=True)
class Remembered:
    """`is_complete`: recovery has looked up what Redis had lost when its epoch began."""

    memory: Memory
    database: str
    is_complete: bool


def remember() -> Remembered:
    """Compare the memory of Redis with the note, and advance it. The caller notes it when its own work is done."""
    own_database.confirm()
    with absence_translated():
        row, _ = RedisMemory.objects.get_or_create(pk=1)
    memory = job_records().memory(row.epoch or None, row.sequence)
    return Remembered(memory, str(row.database), is_complete=row.looked_up == memory.epoch)


def note(memory: Memory) -> None:
    run("note_redis_memory", epoch=memory.epoch, sequence=memory.sequence)


def note_looked_up(memory: Memory) -> None:
    RedisMemory.objects.filter(pk=1, epoch=memory.epoch).update(looked_up=memory.epoch)
