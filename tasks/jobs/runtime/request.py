"""The request of a tracked job: what the main process of its worker keeps of a message that a process works on."""

from typing import Any

from billiard.exceptions import TimeLimitExceeded
from celery.worker import state
from celery.worker.request import Request

from executions.text import said_by
from tasks.jobs.runtime import dropped


class TrackedRequest(Request):
    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """A hard limit is recorded before Celery acknowledges the message: if this process dies in between, the
        message comes again and finds the job ended."""
        if not soft and not state.should_terminate:
            dropped.on_hard_limit(self.request_dict, said_by(TimeLimitExceeded(timeout)))
        return super().on_timeout(soft, timeout)
