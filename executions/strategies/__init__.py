"""The designs by which executions that may be out of date are found and refreshed: REFRESH_STRATEGY.

`claim` is the product. The others are where it came from: built as they were, so that they can be measured
and compared (docs/strategies.md). Each is one module; nothing outside knows which is at work.
"""

from functools import cache

from django.utils.module_loading import import_string

from executions.conf import refresh_settings
from executions.strategies.strategy import Strategy

__all__ = ["STRATEGIES", "Strategy", "strategy"]

#: By path and not by class: they use the use cases, which mark by way of `strategy()`.
STRATEGIES = {
    "claim": "executions.strategies.claim.Claim",
    "scan": "executions.strategies.scan.Scan",
    "lock": "executions.strategies.lock.Lock",
    "hash": "executions.strategies.hash.Hash",
    "upstream": "executions.strategies.upstream.Upstream",
}


def strategy() -> Strategy:
    """The one the settings name."""
    return _made(refresh_settings().strategy)


@cache
def _made(name: str) -> Strategy:
    made: Strategy = import_string(STRATEGIES[name])()
    return made
