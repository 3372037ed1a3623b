"""Deliveries: reports of jobs are landed, and the jobs that follow a success get their messages."""

from collections.abc import Sequence

from tasks.jobs.delivery.landing import Landed, land
from tasks.jobs.lifecycle import publication
from tasks.jobs.lifecycle.job_report import JobReport


def deliver(reports: Sequence[JobReport]) -> Landed:
    """Land the reports; then publish what follows. What if the process dies in between: recovery publishes it."""
    landed = land(reports)
    if landed.succeeded:
        publication.publish_after_commit(after=landed.succeeded)
    return landed
