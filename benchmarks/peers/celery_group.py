"""Celery's group, with Redis as its result backend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery import group
from celery.result import GroupResult

from benchmarks.peers.celery_jobs import app, noted
from benchmarks.peers.celery_workers import celery_workers
from benchmarks.peers.said import Said

NAME = "Celery's group"
workers = celery_workers


@dataclass(frozen=True)
class Group:
    id: str
    size: int

    def says(self) -> Said:
        """Ask as a page does that knows the id of the group."""
        found: Any = GroupResult.restore(self.id, app=app)
        done = int(found.completed_count())
        return Said(done, done == self.size, "successful" if done == self.size else "waiting")


def start(numbers: Sequence[int]) -> Group:
    result: Any = group(noted.s(number) for number in numbers).apply_async()
    result.save()
    return Group(result.id, len(numbers))
