"""The base of the commands that ask Redis."""

from typing import Any

from harbor_refresh.executions.management.command import VerbCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.queue.connection import absence_remembered


class WaitsOnceCommand(VerbCommand):
    """A command with verbs that waits for an absent Redis once, however many operations it makes."""

    def answer(self, options: dict[str, Any]) -> Answer:
        with absence_remembered():
            return super().answer(options)
