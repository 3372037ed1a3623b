"""Celery's chord, with Redis as its result backend: its body runs when all tasks of its header have ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery import chord

from benchmarks.peers.celery_jobs import ended, noted
from benchmarks.peers.celery_workers import celery_workers
from benchmarks.peers.said import Said

NAME = "Celery's chord"
workers = celery_workers


@dataclass(frozen=True)
class Chord:
    body: Any

    def says(self) -> Said:
        """It tells the state of the body, and keeps no count of the header that a caller could ask for."""
        state = str(self.body.state)
        return Said(None, state == "SUCCESS", state)


def start(numbers: Sequence[int]) -> Chord:
    return Chord(chord((noted.s(number) for number in numbers), ended.s()).apply_async())
