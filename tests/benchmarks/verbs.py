"""The queue's verbs with the whole backlog queued and nobody else at work.

Redis's slow log counts waiting for a core as time spent. With the pipeline on a machine of two cores that is
what it mostly shows: a plain SADD of 200 members, 0.05 ms of work, appears there with 10 ms. Here every verb
has the machine to itself, so what it shows is the command.
"""

from executions.conf import refresh_settings
from executions.queue import execution_queue, this_node
from tests.benchmarks.meters import RedisMeter

ROUNDS = 100
AT_ONCE = 1_000


def slow_alone() -> list[str]:
    """Claim, take over and give back again and again; the slow log afterwards. The backlog is as before."""
    queue, meter = execution_queue(), RedisMeter()
    meter.start()
    held = []
    room = refresh_settings().share // AT_ONCE
    for _ in range(ROUNDS):
        batch = queue.claim_batch(this_node.name, AT_ONCE)
        held.append(queue.take_over(batch.claim, this_node.name))
        queue.stats()
        if len(held) >= room:
            queue.mark_failed(held.pop(0), counted=False)
    for claim in held:
        queue.mark_failed(claim, counted=False)
    return meter.slow()
