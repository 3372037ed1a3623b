"""take_over: a claim that waited gets the node that works it, once."""

import pytest

from harbor_refresh.tasks.queue.claim import Claim
from tests.integration.queue.verb_cases import ALIVE, NOW, SECOND, Case, Faked, flight, played
from tests.integration.redis_state import Redis, whole_redis

WAITS = Claim("waiting@n1", "7", ("1:A", "2:B"))


def mine(member: str, stamp: int) -> str:
    return f"{member}:me:{stamp}"


TAKE_OVER = {
    "a live claim gets the node that works on it, and a new stamp": Case(
        flight("1:A:waiting@n1:7", "2:B:waiting@n1:7", "3:C:waiting@n1:7"),
        flight(mine("1:A", NOW), mine("2:B", NOW), "3:C:waiting@n1:7") | {"stamp": str(NOW)} | ALIVE,
        Claim("me", str(NOW), ("1:A", "2:B")),
    ),
    "only the part that is live": Case(
        flight("2:B:waiting@n1:7", "1:A:n2:8"),
        flight(mine("2:B", NOW), "1:A:n2:8") | {"stamp": str(NOW)} | ALIVE,
        Claim("me", str(NOW), ("2:B",)),
    ),
    "a stamp is not given twice when the clock stands still": Case(
        flight("2:B:waiting@n1:7") | {"stamp": str(NOW)},
        flight(mine("2:B", NOW + 1)) | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("2:B",)),
    ),
    "a stamp of up to a minute ahead is believed": Case(
        flight("2:B:waiting@n1:7") | {"stamp": str(NOW + 60 * SECOND)},
        flight(mine("2:B", NOW + 60 * SECOND + 1)) | {"stamp": str(NOW + 60 * SECOND + 1)} | ALIVE,
        Claim("me", str(NOW + 60 * SECOND + 1), ("2:B",)),
    ),
    "a stamp of more than a minute ahead is forgotten: the clock was put right": Case(
        flight("2:B:waiting@n1:7") | {"stamp": str(NOW + 60 * SECOND + 1)},
        flight(mine("2:B", NOW)) | {"stamp": str(NOW)} | ALIVE,
        Claim("me", str(NOW), ("2:B",)),
    ),
    "a claim that was recovered gives nothing": Case(
        {"queue:v2": {"1:A", "2:B"}}, {"queue:v2": {"1:A", "2:B"}}, Claim("me", "", ())
    ),
    "a claim that somebody else has now gives nothing": Case(
        flight("1:A:waiting@n1:8", "2:B:n3:7"), flight("1:A:waiting@n1:8", "2:B:n3:7"), Claim("me", "", ())
    ),
}


@pytest.mark.parametrize("name", TAKE_OVER)
def test_take_over(name: str, redis: Redis, faked: Faked) -> None:
    case = TAKE_OVER[name]
    assert played(redis, case, lambda: faked[0].take_over(WAITS, "me")) == case.result


def test_a_message_that_is_delivered_twice_is_worked_once_even_by_the_same_node(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    queue.mark(["1:A", "2:B"])
    claim = queue.claim("me", 10).claim
    assert len(queue.take_over(claim, "me")) == 2
    before = whole_redis(redis)
    assert len(queue.take_over(claim, "me")) == 0
    assert whole_redis(redis) == before
