"""The designs that keep marks and refresh executions. REFRESH_STRATEGY chooses one.

`claim` is the product. The others are the designs before it, built as they were, so that they can be measured and
compared (docs/explanation/strategies.md).
"""

from harbor_refresh.executions.conf.declarations import value
from harbor_refresh.tasks.conf import DECLARED
from harbor_refresh.tasks.strategies.current import ClaimDesign, Strategy
from harbor_refresh.tasks.strategies.older import Hash, Lock, Scan, Upstream

__all__ = ["STRATEGIES", "Strategy", "strategy"]

STRATEGIES: dict[str, Strategy] = {one.name: one for one in (ClaimDesign(), Scan(), Lock(), Hash(), Upstream())}


def strategy() -> Strategy:
    """Return the design that the settings name. A check tells a project of a name that does not exist; until it is
    mended, `claim` is used."""
    return STRATEGIES.get(value(DECLARED["strategy"]), STRATEGIES["claim"])
