"""The node: one life of one process, the holder of claims. Its name is never used again.

Each pool child of a worker is a node of its own, so the death of a child is noticed like the death of a whole
worker: its heartbeats stop. See docs/explanation/decisions/0004-a-node-is-a-process.md.
"""

import os
import re
import secrets
import socket
import threading
import time


class Node:
    """The name this process claims under. After a fork the child gets a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._name = ""

    @property
    def name(self) -> str:
        with self._lock:
            if self._pid != os.getpid():
                self._become_new()
            return self._name

    def renew(self) -> None:
        """Take a new name. What the old one may still hold is released when its silence is noticed.

        For a process that lost its connection in the middle of a claim and cannot know what it holds.
        """
        with self._lock:
            self._become_new()

    def _become_new(self) -> None:
        host = re.sub("[:@]", "-", socket.gethostname()) or "localhost"
        started = f"{time.time_ns() // 1_000_000:x}{secrets.token_hex(2)}"
        self._pid = os.getpid()
        self._name = f"{host}-{self._pid}-{started}"


def host_of(node: str) -> str:
    """Return the host in the name of a node."""
    return node.rsplit("-", 2)[0]


this_node = Node()
