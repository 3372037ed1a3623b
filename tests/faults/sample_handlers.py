"""A handler that writes down each call. Workers import it by `--include`."""

import os
from pathlib import Path

from harbor_refresh.executions.news.handlers import Change, on_execution


@on_execution("REPLICATION")
def note(change: Change) -> None:
    with Path(os.environ["HANDLER_CALLS"]).open("a") as calls:
        calls.write(f"{change.execution_id}:{change.revision}\n")
