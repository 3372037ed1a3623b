"""The arguments that jobs have asked for are written into their rows (tasks/sql/write_arguments.sql)."""

import json
from collections.abc import Sequence

from tasks.database import run
from tasks.jobs.celery_json import as_json
from tasks.jobs.records.arguments import Request


def write_arguments(requests: Sequence[Request]) -> None:
    """Write what these jobs asked for, for each later message. A row with later arguments stays as it is."""
    if requests:
        run(
            "write_arguments",
            task_ids=[one.task_id for one in requests],
            jobs=[one.job for one in requests],
            revisions=[one.arguments.revision for one in requests],
            args=[json.dumps(as_json(one.arguments.args)) for one in requests],
            kwargs=[json.dumps(as_json(one.arguments.kwargs)) for one in requests],
        )
