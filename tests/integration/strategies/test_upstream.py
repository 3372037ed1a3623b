"""The design that pops a hundred marks at a time from one set."""

from collections.abc import Sequence

import pytest
from pytest_django import Settings

from benchmarks.designs import strategy
from harbor_refresh.executions.lifecycle import crash_points
from tests.integration.strategies.marked_executions import marked, refuse

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_upstream_pops_a_hundred_at_a_time(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    marked(250)
    backlogs: list[int] = []

    def look(point: str, _: Sequence[int]) -> None:
        if point == "one":
            backlogs.append(strategy().backlog())

    crash_points.handlers.append(look)
    strategy().cycle()
    assert sorted(set(backlogs), reverse=True) == [150, 50, 0]
    assert len(backlogs) == 250


def test_upstream_ends_a_cycle_that_only_meets_what_has_failed_in_it(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    ids = marked(3)
    refuse(ids[0])
    tried: list[int] = []
    crash_points.handlers.append(lambda point, at: tried.extend(at) if point == "one" else None)
    assert strategy().cycle().succeeded == 2
    assert tried.count(ids[0]) == 2
    assert strategy().backlog() == 1
