"""The designs that keep marks and refresh executions. REFRESH_STRATEGY chooses one.

`claim` is the product. The others are the designs before it, built as they were, so that they can be measured and
compared (docs/explanation/strategies.md). A design is imported only when it is chosen.
"""

from functools import cache

from django.utils.module_loading import import_string

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.strategies.claim import Strategy

__all__ = ["STRATEGIES", "Strategy", "strategy"]

STRATEGIES = {
    "claim": "harbor_refresh.tasks.strategies.claim.Claim",
    "scan": "harbor_refresh.tasks.strategies.older.Scan",
    "lock": "harbor_refresh.tasks.strategies.older.Lock",
    "hash": "harbor_refresh.tasks.strategies.older.Hash",
    "upstream": "harbor_refresh.tasks.strategies.older.Upstream",
}


def strategy() -> Strategy:
    """Return the design that the settings name. A check tells a project of a name that does not exist; until it is
    mended, `claim` is used."""
    name = refresh_settings().strategy
    return _made(name if name in STRATEGIES else "claim")


@cache
def _made(name: str) -> Strategy:
    made: Strategy = import_string(STRATEGIES[name])()
    return made
