"""The queue of executions whose status may be out of date: two sets in Redis, and the verbs over them."""

from functools import cache

from executions.conf import refresh_settings
from executions.queue.claim import Batch, Claim
from executions.queue.clock import at
from executions.queue.connection import patient, single
from executions.queue.counts import Count, counts
from executions.queue.job_record import MAX_MESSAGE, UNKNOWN, Acknowledged, JobRecord
from executions.queue.job_records import JobRecords, Memory, job_records
from executions.queue.members import Token, member
from executions.queue.node import host_of, this_node
from executions.queue.queue import SMALL, ExecutionQueue, GivenBack, Marked, Sign, Stats
from executions.queue.run import Begun, Lease, Offer, Run, Verdict

__all__ = [
    "MAX_MESSAGE",
    "SMALL",
    "UNKNOWN",
    "Acknowledged",
    "Batch",
    "Begun",
    "Claim",
    "Count",
    "ExecutionQueue",
    "GivenBack",
    "JobRecord",
    "JobRecords",
    "Lease",
    "Marked",
    "Memory",
    "Offer",
    "Run",
    "Sign",
    "Stats",
    "Token",
    "Verdict",
    "at",
    "counts",
    "execution_queue",
    "host_of",
    "job_records",
    "member",
    "this_node",
]


@cache
def execution_queue() -> ExecutionQueue:
    """The queue of this process, by the settings. Connections are made when first used."""
    return ExecutionQueue(refresh_settings(), patient(), single())
