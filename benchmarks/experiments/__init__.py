"""The experiments: each is a module with `run`, `COLUMNS` and, if it has options of its own, `arguments`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from benchmarks import options
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen
from benchmarks.servers import Servers

EXPERIMENTS = {
    "strategies": "benchmarks.experiments.strategies",
    "backlog": "benchmarks.experiments.backlog",
    "workers": "benchmarks.experiments.workers",
    "freshness": "benchmarks.experiments.freshness",
    "reports": "benchmarks.experiments.reports",
    "jobs": "benchmarks.experiments.jobs",
    "deliveries": "benchmarks.experiments.deliveries",
    "hooks": "benchmarks.experiments.hooks",
    "intake": "benchmarks.experiments.intake",
    "peers": "benchmarks.experiments.peers",
}


class Experiment(Protocol):
    """The interface of an experiment. `arguments(parser: ArgumentParser)` is optional."""

    #: The columns of the printed table: (key of the row's JSON, title).
    COLUMNS: Sequence[Column]

    def run(self, servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
        """Measure. Pass each row to `screen.keep(row)` as soon as it is measured."""


def experiment(name: str) -> Experiment:
    """Import the module of that name. Django must be set up for the measured servers."""
    return cast("Experiment", import_module(EXPERIMENTS[name]))


def add_arguments(parser: ArgumentParser) -> None:
    options.arguments(parser)
    for name in EXPERIMENTS:
        if arguments := getattr(experiment(name), "arguments", None):
            arguments(parser)
