"""The records of jobs in a process without Redis: there are none, because the database knows each run."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.jobs.lifecycle.task_state import has_ended, task_state_of
from harbor_refresh.tasks.jobs.records.run import Begun, LeaseAnswer, ReceivedMessage, Run, Verdict
from harbor_refresh.tasks.jobs.revisions import next_revision


class RecordsWithoutRedis:
    """What JobRecords answers about a job that has no record. A job runs in one process, so no run is lost."""

    @property
    def conf(self) -> Refresh:
        return refresh_settings()

    def begin(self, received: ReceivedMessage, node: str) -> Begun:
        run = Run(received.job, received.task_id, node, received.revision, received.runs + 1)
        return Begun(Verdict.GO, run, "")

    def undo(self, begun: Begun, *, instead: str | None = None) -> bool:
        return True

    def check_in(self, run: Run, message: str = "") -> bool:
        """Return whether the run should stop: its job has ended, or is in a later run."""
        state = task_state_of(run.task_id, run.job)
        return state is None or has_ended(state, run.job) or state.revision > run.revision

    def renew(self, runs: Sequence[Run], *, forgotten_too: bool = False) -> list[LeaseAnswer]:
        return [LeaseAnswer.KNOWN for _ in runs]

    def settle(
        self, run: Run, status: str, message: str, *, delay: float = 0.0, arguments: str = "", given: int = 0
    ) -> int:
        """Return the revision after this end. The report of the end brings the arguments into the database."""
        runs_again = status == Status.SCHEDULED
        return next_revision(max(run.revision, given), time.time()) if runs_again else run.revision

    def acknowledge(self, reports: Iterable[tuple[str, int, str]]) -> int:
        return 0

    def arguments_are_written(self, arguments: Iterable[tuple[str, int]]) -> None:
        """Forget nothing: no other place than the database has them."""

    def stop(self, jobs: Iterable[str]) -> int:
        """Ask nothing: a job that runs finds in the database that it was stopped."""
        return 0

    def of(self, jobs: Sequence[str]) -> dict[str, Any]:
        return {}

    def begin_epoch(self) -> None:
        """Begin nothing: no broker has lost a message."""
