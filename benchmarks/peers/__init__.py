"""What our jobs are measured beside: other ways to run many jobs and to learn when all of them have ended.

A peer has two modules: one with its jobs, which its workers import, and one that starts them and asks about them.
Each runs with the settings that its own documentation advises for jobs that must not be lost.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Protocol, cast

from benchmarks.peers.said import Said
from benchmarks.processes import Processes
from benchmarks.servers import Servers

PEERS = {
    "ours": "benchmarks.peers.ours",
    "ours-on-celery": "benchmarks.peers.ours_on_celery",
    "celery-group": "benchmarks.peers.celery_group",
    "celery-chord": "benchmarks.peers.celery_chord",
    "procrastinate": "benchmarks.peers.of_procrastinate",
    "dramatiq": "benchmarks.peers.of_dramatiq",
}


class Parent(Protocol):
    """Many jobs that were started together."""

    def says(self) -> Said:
        """Ask how many of its jobs are done, and whether all have ended."""


class Peer(Protocol):
    """The interface of a peer's module."""

    #: As it stands in the table.
    NAME: str

    def workers(self, servers: Servers, workers: int, concurrency: int) -> AbstractContextManager[Processes]:
        """Yield workers that are ready, named worker1, worker2, …"""

    def start(self, numbers: Sequence[int]) -> Parent:
        """Publish a job for each number under one parent. Each notes its number, see `effects`."""


def peer(name: str) -> Peer:
    return cast("Peer", import_module(PEERS[name]))
