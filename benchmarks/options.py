"""The options of single experiments, and readers of options.

All experiments share one parser, so each option is declared once. If its default depends on the experiment, the
parser's default is None and `with_defaults` replaces it.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import Any

from harbor_refresh.executions.management.command import count

SIZES = [1_000, 10_000, 100_000, 1_000_000]
DEFAULTS: dict[str, dict[str, Any]] = {
    "freshness": {"processes": 2},
    "reports": {"processes": 2, "batches": [1, 10, 500]},
    "jobs": {"rounds": 100},
    "hooks": {"processes": 2},
    "intake": {"processes": 4, "rounds": 100},
    "peers": {},
}


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 86_400:
        raise ArgumentTypeError(f"got {text!r}, takes seconds above 0, up to 86,400")
    return number


def numbers(at_least: int, at_most: int) -> Callable[[str], list[int]]:
    """Read whole numbers with commas between them; return each once, in ascending order."""
    one = count(at_least, at_most)

    def whole_numbers(text: str) -> list[int]:
        found = sorted({one(word.strip()) for word in text.split(",") if word.strip()})
        if not found:
            raise ArgumentTypeError(f"got {text!r}, takes whole numbers with commas between them")
        return found

    return whole_numbers


def arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("options of single experiments").add_argument
    text = "backlog: how many wait; default: 1000,10000,100000,1000000"
    add("--sizes", type=numbers(1, 100_000_000), default=SIZES, metavar="N,N,…", help=text)
    text = "workers: how many at once; default: 1,2,3,4"
    add("--worker-counts", type=numbers(1, 64), default=[1, 2, 3, 4], metavar="N,N,…", help=text)
    text = "freshness: reports a second; default: 20,50,200,500"
    add("--rates", type=numbers(1, 100_000), default=[20, 50, 200, 500], metavar="N,N,…", help=text)
    text = "freshness: how long at each rate; default: 20"
    add("--seconds", type=seconds, default=20.0, metavar="S", help=text)
    text = "freshness: between two ticks when there is no wake-up; default: 5"
    add("--interval", type=seconds, default=5.0, metavar="S", help=text)
    text = "jobs, peers: tasks of the one execution; default: 10,000"
    add("--tasks", type=count(1, 1_000_000), default=10_000, metavar="N", help=text)
    text = "jobs, intake: how often each is read; default: 100"
    add("--rounds", type=count(1, 100_000), metavar="N", help=text)
    text = "jobs: how many that do nothing one worker runs, in each pass; default: 5,000"
    add("--jobs", type=count(1, 1_000_000), default=5_000, metavar="N", help=text)
    text = "jobs, hooks: how many passes of each kind, in turns; default: 3"
    add("--passes", type=count(1, 100), default=3, metavar="N", help=text)
    text = "freshness, reports, hooks, intake: that report at once; default: 2, intake: 4"
    add("--processes", type=count(1, 64), metavar="N", help=text)
    text = "reports: reports a call, one run each; default: 1,10,500"
    add("--batches", type=numbers(1, 5_000), metavar="N,N,…", help=text)


def with_defaults(experiment: str, options: Namespace) -> Namespace:
    """Replace None by the experiment's own defaults."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    return Namespace(**{**vars(options), **DEFAULTS[experiment], **given})
