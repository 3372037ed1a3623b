"""The node: one life of one process, the holder of claims. Its name is never used again.

Each pool child of a worker is a node of its own, so the death of a child is noticed like the death of a whole
worker: its heartbeats stop. See docs/explanation/decisions/0004-a-node-is-a-process.md.
"""

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harbor_refresh.executions.errors import QueueUnavailable


class ThisNode:
    """The name this process claims under. After a fork the child gets a new one."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        host = re.sub("[:@]", "-", socket.gethostname()) or "localhost"
        started = f"{time.time_ns() // 1_000_000:x}{secrets.token_hex(2)}"
        self.name = f"{host}-{os.getpid()}-{started}"

    @contextmanager
    def renewed_without_redis(self) -> Iterator[None]:
        """If Redis goes down in this block, take a new name, because this process cannot know what it holds.
        Recovery releases what the old name held when its silence is noticed."""
        try:
            yield
        except QueueUnavailable:
            self.renew()
            raise


def host_of(node: str) -> str:
    """Return the host in the name of a node."""
    return node.rsplit("-", 2)[0]


this_node = ThisNode()
os.register_at_fork(after_in_child=this_node.renew)
