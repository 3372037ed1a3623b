"""The request of a tracked job, which the main process of a worker keeps while another process runs the job."""

from typing import Any

from billiard.exceptions import TimeLimitExceeded
from celery.worker import state
from celery.worker.request import Request

from harbor_refresh.executions.text import said_by
from harbor_refresh.tasks.jobs.runtime import celery_events


class TrackedRequest(Request):
    def on_timeout(self, soft: bool, timeout: float) -> Any:
        """Record a hard limit before Celery acknowledges the message. If this process dies in between, the message
        comes again and finds the job ended."""
        if not soft and not state.should_terminate:
            celery_events.on_hard_limit(self.request_dict, said_by(TimeLimitExceeded(timeout)))
        return super().on_timeout(soft, timeout)
