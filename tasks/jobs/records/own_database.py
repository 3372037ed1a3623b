"""The name of this database in messages. Workers leave a message with another name alone.

Two databases have jobs of the same ids if a backup was restored beside its original. The copy begins with the name
of the original, and gets a new one:

| the copy | gets a new name |
| --- | --- |
| is in another place: a dump, a clone, a database made from a template | when a process of ours uses it |
| is the same database to PostgreSQL: a base backup, a snapshot, a standby | by `harbor repair new-name` |

So a standby that takes over keeps its name, and the messages of its jobs stay valid. A dump that replaces its
original gets a new name as well; its jobs are sent again under that name.
"""

from uuid import uuid4

from django.db import DatabaseError, transaction

from harbor_refresh.executions.database import RIGHT_MISSING, absence_translated, sqlstate
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.database import run
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.models.state import RedisMemory

_known = ""  # the name as this process has read it last


def is_known(database: str) -> bool:
    """Whether a message with this name needs no look into the database: it has the known name, or none."""
    return database in {"", _known}


def is_ours(database: str) -> bool:
    """Whether a message with this name is for our database. A message without a name is from a release that wrote
    none. Raises DatabaseAway.

    The name is read once in a process, and again if a message has another, because it may have changed. What if it
    has changed and the message has the old one: admission.py compares it again, in the query of each run.
    """
    return is_known(database) or database == name()


def confirm() -> None:
    """Give a copy its new name before this process sends its first message."""
    if not _known:
        name()


def name() -> str:
    """Read the name of this database. If it was copied since it got that name, it gets a new one first."""
    global _known  # noqa: PLW0603
    with absence_translated():
        row, _ = RedisMemory.objects.get_or_create(pk=1)
        place = _place()
        if place and place != row.made_in:
            if row.made_in:
                _renew(row.made_in, place)
                signals.database_copied.send(sender=name)
            else:
                RedisMemory.objects.filter(pk=1, made_in="").update(made_in=place)
            row.refresh_from_db()
    _known = str(row.database)
    return _known


def renew() -> str:
    """Give this database a new name, have its jobs sent again under that name, and return it."""
    name()
    row = RedisMemory.objects.get(pk=1)
    _renew(row.made_in, row.made_in)
    return name()


def _renew(made_in: str, place: str) -> None:
    """Begin a new epoch of Redis, so that recovery looks up each job that waits for a message. Write the name.

    What if the process dies in between: jobs get a second message each, which is harmless. What if two do it at
    once: one of them writes. What if a job is published in between: its message has the old name and is left
    alone, and the reaper sends another.
    """
    job_records().begin_epoch()
    RedisMemory.objects.filter(pk=1, made_in=made_in).update(made_in=place, database=uuid4())


def _place() -> str:
    """Return where this database is; empty if this role may not know."""
    try:
        with transaction.atomic():
            return str(run("place_of_database")[0][0])
    except DatabaseError as exc:
        if sqlstate(exc) != RIGHT_MISSING:
            raise
        return ""
