"""Deliveries: turns of jobs are landed, and the jobs that follow a success get their messages."""

from collections.abc import Sequence

from tasks.jobs.delivery.landing import Landed, land
from tasks.jobs.lifecycle import publication
from tasks.jobs.lifecycle.turn import Turn


def deliver(turns: Sequence[Turn]) -> Landed:
    """Land the turns; then publish what follows. What if the process dies in between: recovery publishes it."""
    landed = land(turns)
    if landed.succeeded:
        publication.publish_after_commit(after=landed.succeeded)
    return landed
