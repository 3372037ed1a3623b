"""The older designs that find and refresh executions that may be out of date. REFRESH_STRATEGY chooses one.

`claim`, the product, is tasks/pipeline. These are the designs before it, built as they were, so that they can
be measured and compared (docs/strategies.md). A design is imported only when it is chosen.
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
    """Return the design that the settings name; None for `claim`."""
    name = refresh_settings().strategy
    return _made(name) if name in OLDER else None


@cache
def _made(name: str) -> Strategy:
    made: Strategy = import_string(OLDER[name])()
    return made
