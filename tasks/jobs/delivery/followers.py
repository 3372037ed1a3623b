"""Followers: the jobs that follow a success in a chain get their messages once it is delivered."""

from collections.abc import Sequence

from harbor_refresh.tasks.jobs.delivery.deliveries import Delivered, deliver
from harbor_refresh.tasks.jobs.lifecycle import publication
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport


def deliver_and_publish(reports: Sequence[JobReport]) -> Delivered:
    """Deliver the reports, then publish the jobs that follow a success. What if the process dies in between:
    recovery publishes them."""
    delivered = deliver(reports)
    if delivered.succeeded:
        publication.publish_after_commit(after=delivered.succeeded)
    return delivered
