"""claim as a table: what is taken, under which stamp, and how much room there is for it."""

from dataclasses import replace
from typing import Any

import pytest

from harbor_refresh.tasks.pacing import MARKED_SINCE, TICK_SENT
from tests.integration.queue.verb_cases import ALIVE, NOW, SECOND, SIGNS, Case, Faked, flight, played, token
from tests.integration.redis_state import Redis


def claimed(*members: str, **seen: Any) -> dict[str, Any]:
    """What a batch says, with the defaults of an otherwise empty queue."""
    attempts = seen.pop("attempts", {})
    stamp = seen.pop("stamp", str(NOW))
    return {"members": set(members), "stamp": stamp, "attempts": attempts, **seen}


#: To be read with ALIVE in each `after`.
CLAIM = {
    "nothing waits": Case({}, {}, claimed(backlog=0, live_nodes=1)),
    "who finds nothing leaves no wake, and the next mark sends its tick itself": Case(
        {"wake": MARKED_SINCE}, {}, claimed(backlog=0, live_nodes=1)
    ),
    "marks until now are seen to: the wake is as if a tick had just come": Case(
        {"queue:v2": {"1:A"}, "wake": MARKED_SINCE},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "all that waits is taken, under the node and a stamp": Case(
        {"queue:v2": {"1:A", "2:B"}, "wake": TICK_SENT},
        flight(token("1:A"), token("2:B")) | {"stamp": str(NOW)},
        claimed("1:A", "2:B", backlog=2, live_nodes=1),
    ),
    "a stamp is not given twice when the clock stands still": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW)},
        flight(token("1:A", NOW + 1)) | {"stamp": str(NOW + 1)},
        claimed("1:A", stamp=str(NOW + 1), backlog=1, live_nodes=1),
    ),
    "a stamp is not given twice when the clock went back": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 999)},
        flight(token("1:A", NOW + 1000)) | {"stamp": str(NOW + 1000)},
        claimed("1:A", stamp=str(NOW + 1000), backlog=1, live_nodes=1),
    ),
    "a stamp of up to a minute ahead is believed": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 60 * SECOND)},
        flight(token("1:A", NOW + 60 * SECOND + 1)) | {"stamp": str(NOW + 60 * SECOND + 1)},
        claimed("1:A", stamp=str(NOW + 60 * SECOND + 1), backlog=1, live_nodes=1),
    ),
    "a stamp of more than a minute ahead is forgotten: the clock was put right": Case(
        {"queue:v2": {"1:A"}, "stamp": str(NOW + 60 * SECOND + 1)},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "what is in flight and was marked again is claimed again, beside the other claim": Case(
        {"queue:v2": {"1:A", "2:B"}} | flight("1:A:n1:7"),
        flight("1:A:n1:7", token("1:A"), token("2:B")) | {"stamp": str(NOW)},
        claimed("1:A", "2:B", backlog=2, live_nodes=1),
    ),
    "what others have in flight is left to them": Case(
        {"queue:v2": {"1:A"}} | flight("9:Z:n1:7", "1:A:n1:7"),
        flight("9:Z:n1:7", "1:A:n1:7", token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
    "how often each failed before is told": Case(
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "2", "9:Z": "1"}},
        flight(token("1:A"), token("2:B")) | {"stamp": str(NOW), "attempts": {"1:A": "2", "9:Z": "1"}},
        claimed("1:A", "2:B", attempts={"1:A": 2}, backlog=2, live_nodes=1),
    ),
    "while the database is away nobody claims": Case(
        {"queue:v2": {"1:A"}, "pause": "1", "wake": TICK_SENT},
        {"queue:v2": {"1:A"}, "pause": "1"},
        claimed(backlog=1, live_nodes=1),
    ),
    "with no room left nothing is taken": Case(
        {"queue:v2": {"1:A"}} | flight("5:A:n1:7", "6:A:n1:7", "7:A:n1:7", "8:A:n1:7"),
        {"queue:v2": {"1:A"}} | flight("5:A:n1:7", "6:A:n1:7", "7:A:n1:7", "8:A:n1:7"),
        claimed(backlog=1, live_nodes=1),
    ),
    "each live node makes room, a silent one and one from the future do not": Case(
        {"queue:v2": {"1:A"}, "nodes": SIGNS} | flight(*(f"{number}:A:n1:7" for number in range(11, 22))),
        {"nodes": SIGNS | {"me": NOW}, "stamp": str(NOW)}
        | flight(*(f"{number}:A:n1:7" for number in range(11, 22)), token("1:A")),
        claimed("1:A", backlog=1, live_nodes=3),
    ),
    "and no more room than that": Case(
        {"queue:v2": {"1:A"}, "nodes": SIGNS} | flight(*(f"{number}:A:n1:7" for number in range(11, 23))),
        {"queue:v2": {"1:A"}, "nodes": SIGNS | {"me": NOW}}
        | flight(*(f"{number}:A:n1:7" for number in range(11, 23))),
        claimed(backlog=1, live_nodes=3),
    ),
    "who was silent himself lives again with his claim": Case(
        {"queue:v2": {"1:A"}, "nodes": {"me": NOW - 11 * SECOND}},
        flight(token("1:A")) | {"stamp": str(NOW)},
        claimed("1:A", backlog=1, live_nodes=1),
    ),
}


@pytest.mark.parametrize("name", CLAIM)
def test_claim(name: str, redis: Redis, faked: Faked) -> None:
    case = CLAIM[name]
    taken = {"cursor": "0", "wake": TICK_SENT} if case.result["members"] else {}
    case = replace(case, after=ALIVE | taken | case.after)
    batch = played(redis, case, lambda: faked[0].claim("me", 100))
    assert batch.unreadable == ()
    assert case.result == {
        "members": set(batch.claim.members),
        "stamp": batch.claim.stamp,
        "attempts": batch.attempts,
        "backlog": batch.backlog,
        "live_nodes": batch.live_nodes,
    }
