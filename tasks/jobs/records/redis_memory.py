"""Remember: the database notes what it has seen of the memory of Redis, so an older Redis is noticed.

A Redis comes back older from a snapshot, or as a replica that had not heard all. It holds messages and records
that are past, and lacks those that came since. Each publication, and each pass of recovery, advances the memory of
Redis and notes in the database how far it is. A Redis that is behind the note begins a new epoch, as an empty one
does; then recovery looks up what it may have forgotten.
"""

from dataclasses import dataclass

from executions.database import absence_translated
from tasks.database import run
from tasks.jobs.records.records import Memory, job_records
from tasks.models.redis_memory import RedisMemory


@dataclass(frozen=True)
class Remembered:
    """`is_complete`: what Redis had forgotten when its epoch began has been looked up."""

    memory: Memory
    database: str
    is_complete: bool


def remember() -> Remembered:
    """Compare and advance. The caller notes it, when what it does in between is done."""
    with absence_translated():
        row, _ = RedisMemory.objects.get_or_create(pk=1)
    memory = job_records().memory(row.epoch or None, row.sequence)
    return Remembered(memory, str(row.database), is_complete=row.looked_up == memory.epoch)


def note(memory: Memory) -> None:
    run("note_redis_memory", epoch=memory.epoch, sequence=memory.sequence)


def note_looked_up(memory: Memory) -> None:
    RedisMemory.objects.filter(pk=1, epoch=memory.epoch).update(looked_up=memory.epoch)
