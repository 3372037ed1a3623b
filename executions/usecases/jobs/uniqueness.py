"""The keys of unique jobs. A key is held by its job until its task is final and another wants it; nothing has to
free it, so no crash can leave it taken."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from executions.database import run
from executions.models import Job

#: What a unique job has in the place of a key that it was let go of.
LET_GO = "~"


def key_of(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """What a unique job has in common with another that does the same."""
    text = json.dumps([name, list(args), kwargs], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def taken(keys: Iterable[str | None]) -> set[str | None]:
    """Those of the keys whose job is not final; the others are let go."""
    wanted = sorted({key for key in keys if key})
    if not wanted:
        return set()
    run("let_go_of_keys", keys=wanted)
    return set(Job.objects.filter(unique_key__in=wanted).values_list("unique_key", flat=True))


def lost_key(job: Job) -> str | None:
    """The key that a unique job was let go of, for it to take again; None if it has it still, or never had one."""
    was_let_go = job.unique_key is not None and job.unique_key.startswith(LET_GO)
    return key_of(job.name, job.args, job.kwargs) if was_let_go else None
