"""Which experiments there are: each is a module with `run`, `COLUMNS` and, if it has options, `arguments`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from harbor_refresh.bench import options
from harbor_refresh.bench.ground import Ground
from harbor_refresh.bench.rows import Row
from harbor_refresh.bench.screen import Column, Screen

EXPERIMENTS = {
    "strategies": "harbor_refresh.bench.strategies",
    "backlog": "harbor_refresh.bench.backlog",
    "workers": "harbor_refresh.bench.workers",
    "freshness": "harbor_refresh.bench.freshness",
    "hot": "harbor_refresh.bench.hot",
    "progress": "harbor_refresh.bench.progress",
    "reports": "harbor_refresh.bench.reports",
    "jobs": "harbor_refresh.bench.jobs",
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
