"""The runner as a process that a test may kill, and what its numbered reports leave in the database."""

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harbor_refresh.executions.models import Task
from harbor_refresh.local.process import spawn
from tests.integration.service.client.runner import numbered
from tests.integration.service.web import ROOT

State = Mapping[int, tuple[str, int, int, str]]


def state(tasks: Sequence[int]) -> State:
    """Status, revision, number of runs and message of each task."""
    rows = Task.objects.filter(pk__in=tasks)
    return {one.pk: (one.status, one.status_revision, one.run_count, one.status_message) for one in rows}


def after(tasks: Sequence[int], count: int) -> State:
    """The state after the first `count` numbered reports, each applied once and in order."""
    found = dict.fromkeys(tasks, ("Pending", 0, 0, ""))
    for number in range(count):
        one = numbered(tasks, number)
        found[one.task_id] = (one.status, one.revision, one.revision, one.message or "")
    return found


class Runner:
    def __init__(self, url: str, token: str, spool: Path, tasks: Sequence[int], count: int) -> None:
        self._log = spool.parent / f"runner-{tasks[0]}.log"
        given = {"url": url, "spool": str(spool), "tasks": list(tasks), "count": count}
        self.process = spawn(
            [sys.executable, "-m", "tests.integration.service.client.runner", json.dumps(given)],
            log=self._log,
            death_signal=signal.SIGKILL,
            cwd=ROOT,
            env={"HARBOR_REFRESH_TOKEN": token},
        )

    def _lines(self) -> list[str]:
        return self._log.read_text().split("\n")[:-1]

    @property
    def made(self) -> int:
        """How many of its reports are in the spool, or one less."""
        return len([line for line in self._lines() if line.isdecimal()])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def counts(self) -> dict[str, int]:
        """Wait for its end. How many reports it has sent, by their result."""
        assert self.process.wait(300) == 0, self._log.read_text()[-3000:]
        counts: dict[str, int] = json.loads(self._lines()[-1])
        return counts
