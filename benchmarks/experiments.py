"""Which experiments there are: each is a module with `run`, `COLUMNS` and, if it has options, `arguments`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from benchmarks import options
from benchmarks.ground import Ground
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen

EXPERIMENTS = {
    "strategies": "benchmarks.strategies",
    "backlog": "benchmarks.backlog",
    "workers": "benchmarks.workers",
    "freshness": "benchmarks.freshness",
    "hot": "benchmarks.hot",
    "progress": "benchmarks.progress",
    "reports": "benchmarks.reports",
    "jobs": "benchmarks.jobs",
}


class Experiment(Protocol):
    """What such a module has. One with options of its own has `arguments(parser: ArgumentParser)` too."""

    #: The table at the end: (key of the row's JSON, title).
    COLUMNS: Sequence[Column]

    def run(self, ground: Ground, options: Namespace, screen: Screen) -> list[Row]:
        """Measure. Each row goes to `screen.keep(row)` as soon as it is there."""


def experiment(name: str) -> Experiment:
    """The module of that name. It is imported when Django is set up for the measured servers."""
    return cast("Experiment", import_module(EXPERIMENTS[name]))


def add_arguments(parser: ArgumentParser) -> None:
    options.arguments(parser)
    for name in EXPERIMENTS:
        if arguments := getattr(experiment(name), "arguments", None):
            arguments(parser)
