"""The older designs by which executions that may be out of date are found and refreshed: REFRESH_STRATEGY.

`claim`, the product, is tasks/pipeline. The others are where it came from: built as they were, so that they can be
measured and compared (docs/strategies.md). One is imported only when it is chosen.
"""

from functools import cache

from django.utils.module_loading import import_string

from tasks.conf import refresh_settings
from tasks.strategies.strategy import Strategy

__all__ = ["OLDER", "Strategy", "older_strategy"]

OLDER = {
    "scan": "tasks.strategies.scan.Scan",
    "lock": "tasks.strategies.lock.Lock",
    "hash": "tasks.strategies.hash.Hash",
    "upstream": "tasks.strategies.upstream.Upstream",
}


def older_strategy() -> Strategy | None:
    """The one that the settings name; None if that is `claim`."""
    name = refresh_settings().strategy
    return _made(name) if name in OLDER else None


@cache
def _made(name: str) -> Strategy:
    made: Strategy = import_string(OLDER[name])()
    return made
