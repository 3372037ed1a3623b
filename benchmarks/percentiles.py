"""Percentiles by nearest rank: always a measured value, never an interpolated one."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all values do not exceed; None if there are none."""
    if not 0 < share <= 1:
        raise ValueError(f"a share is above 0, up to 1: {share}")
    if not values:
        return None
    return sorted(values)[math.ceil(round(share * len(values), 9)) - 1]


def summary(values: Sequence[float], digits: int = 4) -> dict[str, float | None]:
    """The four figures every row of latencies has: p50, p95, p99, max."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    found = {name: percentile(values, share) for name, share in shares.items()}
    return {name: None if value is None else round(value, digits) for name, value in found.items()}
