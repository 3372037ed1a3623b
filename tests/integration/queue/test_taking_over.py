"""take_over: a claim that waited gets the node that works it, once."""

import pytest

from tasks.queue.claim import Claim
from tests.integration.queue.table import ALIVE, NOW, SECOND, Case, Faked, flight, played, token
from tests.integration.state import Redis, whole_redis

TAKE_OVER = {
    "a live claim gets the node that works it, and a new stamp, an odd one": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7"),
        flight(token("1:A", NOW + 1), token("2:B", NOW + 1), "3:C:n1:7") | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("1:A", "2:B")),
    ),
    "only the part that is live": Case(
        flight("2:B:n1:7", "1:A:n2:8"),
        flight(token("2:B", NOW + 1), "1:A:n2:8") | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("2:B",)),
    ),
    "a stamp is not given twice when the clock stands still": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 1)},
        flight(token("2:B", NOW + 3)) | {"stamp": str(NOW + 3)} | ALIVE,
        Claim("me", str(NOW + 3), ("2:B",)),
    ),
    "a stamp of up to a minute ahead is believed": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 60 * SECOND)},
        flight(token("2:B", NOW + 60 * SECOND + 1)) | {"stamp": str(NOW + 60 * SECOND + 1)} | ALIVE,
        Claim("me", str(NOW + 60 * SECOND + 1), ("2:B",)),
    ),
    "a stamp of more than a minute ahead is forgotten: the clock was put right": Case(
        flight("2:B:n1:7") | {"stamp": str(NOW + 60 * SECOND + 1)},
        flight(token("2:B", NOW + 1)) | {"stamp": str(NOW + 1)} | ALIVE,
        Claim("me", str(NOW + 1), ("2:B",)),
    ),
    "a claim that was recovered gives nothing": Case(
        {"queue:v2": {"1:A", "2:B"}}, {"queue:v2": {"1:A", "2:B"}}, Claim("me", "0", ())
    ),
    "a claim that somebody else has now gives nothing": Case(
        flight("1:A:n1:8", "2:B:n3:7"), flight("1:A:n1:8", "2:B:n3:7"), Claim("me", "0", ())
    ),
}


@pytest.mark.parametrize("name", TAKE_OVER)
def test_take_over(name: str, redis: Redis, faked: Faked) -> None:
    case = TAKE_OVER[name]
    assert played(redis, case, lambda: faked[0].take_over(case.claim, "me")) == case.result


def test_a_message_that_is_delivered_twice_is_worked_once_even_by_the_same_node(
    redis: Redis, faked: Faked
) -> None:
    queue, _ = faked
    queue.add(["1:A", "2:B"])
    claim = queue.claim_batch("me", 10).claim
    assert len(queue.take_over(claim, "me")) == 2
    before = whole_redis(redis)
    assert len(queue.take_over(claim, "me")) == 0
    assert whole_redis(redis) == before
