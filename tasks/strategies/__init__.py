"""The older designs that find and refresh executions that may be out of date. REFRESH_STRATEGY chooses one.

`claim`, the product, is tasks/pipeline. These are the designs before it, built as they were, so that they can
be measured and compared (docs/strategies.md). A design is imported only when it is chosen.
"""

from functools import cache

from django.utils.module_loading import import_string

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.strategies.strategy import Strategy

__all__ = ["OLDER", "Strategy", "older_strategy"]

OLDER = {
    "scan": "harbor_refresh.tasks.strategies.scan.Scan",
    "lock": "harbor_refresh.tasks.strategies.lock.Lock",
    "hash": "harbor_refresh.tasks.strategies.hash.Hash",
    "upstream": "harbor_refresh.tasks.strategies.upstream.Upstream",
}


def older_strategy() -> Strategy | None:
    """Return the design that the settings name; None for `claim`."""
    name = refresh_settings().strategy
    return _made(name) if name in OLDER else None


@cache
def _made(name: str) -> Strategy:
    made: Strategy = import_string(OLDER[name])()
    return made
