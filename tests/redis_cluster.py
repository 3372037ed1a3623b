"""A Redis Cluster of three primaries, and a replica of the one that has the slot of the queue, as processes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.crc import key_slot

from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.redis import EmbeddedRedis
from tests.waiting import slowness, wait_for

SLOTS = 16_384
PRIMARIES = 3
PREFIX = "{cache:execution:refresh:}"
SLOT = key_slot(PREFIX.encode())


class Node(EmbeddedRedis):
    """A node. The bus of the Cluster has a port of its own choice, because the usual one may not exist."""

    name = "A node of the Cluster"

    def __init__(self, directory: Path, node_timeout: int) -> None:
        self.bus = choose_port()
        words = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(node_timeout))
        super().__init__(directory, extra=(*words, "--cluster-port", str(self.bus)))

    def run(self, *command: Any) -> Any:
        with Redis.from_url(self.url, decode_responses=True) as client:
            return client.execute_command(*command)

    @property
    def id(self) -> str:
        return str(self.run("CLUSTER", "MYID"))

    def says(self) -> dict[str, str]:
        """What it says of the Cluster."""
        answer = self.run("CLUSTER", "INFO")
        return answer if isinstance(answer, dict) else dict(line.split(":") for line in answer.split())

    def follows(self, primary: "Node") -> bool:
        """Whether it is a replica that has all of this primary."""
        with Redis.from_url(self.url) as client:
            info = client.info("replication")
        return bool(info.get("master_port") == primary.port and info.get("master_link_status") == "up")


class RedisCluster:
    """`nodes`: the primaries, then the replica of the one that has the slot of the queue."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{LOOPBACK}:{one.port}" for one in self.nodes)

    def owner(self) -> Node:
        """The primary that has the slot of the queue, as a live node says."""
        for node in self.nodes:
            if node.running:
                for first, last, primary, *_ in node.run("CLUSTER", "SLOTS"):
                    if first <= SLOT <= last:
                        return next(one for one in self.nodes if one.port == primary[1])
        raise AssertionError("no live node knows the slot")

    def kill_owner(self) -> Node:
        """Kill it, and wait until its replica has taken over. Returns the killed one."""
        killed = self.owner()
        killed.kill()
        wait_for(lambda: self.owner() is not killed and self.is_whole(), "the replica to take over")
        return killed

    def is_whole(self) -> bool:
        return all(node.says()["cluster_state"] == "ok" for node in self.nodes if node.running)

    def move_slot(self, target: Node) -> Iterator[None]:
        """Move the slot of the queue to another primary. Stops half-way once, before the keys are moved."""
        source = self.owner()
        target.run("CLUSTER", "SETSLOT", SLOT, "IMPORTING", source.id)
        source.run("CLUSTER", "SETSLOT", SLOT, "MIGRATING", target.id)
        yield
        if keys := source.run("CLUSTER", "GETKEYSINSLOT", SLOT, 1_000):
            source.run("MIGRATE", LOOPBACK, target.port, "", 0, 5_000, "KEYS", *keys)
        for node in (target, source):
            node.run("CLUSTER", "SETSLOT", SLOT, "NODE", target.id)


@contextmanager
def redis_cluster(directory: Path, *, replicas: int = 1) -> Iterator[RedisCluster]:
    """Start it, and wait until each node can serve and the replica, if there is one, has all of its primary."""
    node_timeout = round(1_000 * slowness())
    with ExitStack() as opening:
        nodes = [
            opening.enter_context(Node(directory / f"node-{number}", node_timeout))
            for number in range(PRIMARIES + replicas)
        ]
        primaries, followers = nodes[:PRIMARIES], nodes[PRIMARIES:]
        for number, node in enumerate(primaries):
            first, last = (SLOTS * part // PRIMARIES for part in (number, number + 1))
            node.run("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
        for number, node in enumerate(nodes):
            node.run("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in nodes[1:]:
            node.run("CLUSTER", "MEET", LOOPBACK, nodes[0].port, nodes[0].bus)
        made = RedisCluster(nodes)
        known = str(len(nodes))
        wait_for(
            lambda: made.is_whole() and all(one.says()["cluster_known_nodes"] == known for one in nodes),
            "the Cluster",
        )
        for replica in followers:
            replica.run("CLUSTER", "REPLICATE", made.owner().id)
        wait_for(lambda: all(one.follows(made.owner()) for one in followers), "the replica of the Cluster")
        yield made
