"""What Redis spends on workers that only tell that they live, or ask for work."""

from benchmarks.scaling.costs import MICRO, Costs
from benchmarks.scaling.fleet import Fleet


def signs_of_life(fleet: Fleet, costs: Costs) -> dict[str, float]:
    """Return the share of its time that Redis spends on heartbeats, and the broker on workers that wait.

    Each node sends a heartbeat every two seconds. A worker asks the broker about three times a second: for
    messages, and for unacknowledged ones. With gossip each worker's heartbeat goes to every worker.
    """
    queue = fleet.nodes / 2 * costs.command * MICRO
    broker = 3 * fleet.workers * costs.command * MICRO
    if fleet.has_gossip:
        broker += fleet.workers**2 / 2 * costs.event * MICRO
    if fleet.has_own_broker:
        return {"Redis": queue, "broker": broker}
    return {"Redis": queue + broker}
