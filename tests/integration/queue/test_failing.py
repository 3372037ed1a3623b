"""fail, release: both return a claim to the queue. A failure is counted, until a member failed too often."""

import pytest

from harbor_refresh.tasks.queue.replies import Released
from tests.integration.queue.verb_cases import Case, Faked, flight, played
from tests.integration.redis_state import Redis

FAILED = {
    "a failure is counted": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "1"}},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2", "2:B": "1"}},
        Released(2, ()),
    ),
    "a failure that is nobody's is not counted": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "2"}},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2"}},
        Released(2, ()),
        counted=False,
    ),
    "who failed too often is on no list any more": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"1:A": "2", "9:Z": "2"}},
        {"queue:v2": {"2:B"}, "attempts": {"2:B": "1", "9:Z": "2"}},
        Released(1, ("1:A",)),
    ),
    "a claim that was recovered changes nothing and counts nothing": Case(
        {"queue:v2": {"1:A"}} | flight("2:B:n2:8"),
        {"queue:v2": {"1:A"}} | flight("2:B:n2:8"),
        Released(0, ()),
    ),
    "what was marked meanwhile is there once": Case(
        {"queue:v2": {"1:A"}} | flight("1:A:n1:7"),
        {"queue:v2": {"1:A"}, "attempts": {"1:A": "1"}},
        Released(1, ()),
    ),
}


@pytest.mark.parametrize("name", FAILED)
def test_fail_and_release(name: str, redis: Redis, faked: Faked) -> None:
    case = FAILED[name]
    verb = faked[0].fail if case.counted else faked[0].release
    assert played(redis, case, lambda: verb(case.claim)) == case.result
