"""mark_complete: what is done leaves Redis, if it is still the claim's, and may be worth a tick."""

import pytest

from harbor_refresh.tasks.pacing import TICK_SENT
from harbor_refresh.tasks.queue.replies import Completed
from tests.integration.queue.verb_cases import NOW, SECOND, Case, Faked, flight, played, waiting
from tests.integration.redis_state import Redis, queue_with_clock

COMPLETE = {
    "tokens and attempts are gone": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7") | {"attempts": {"1:A": "1", "3:C": "2"}},
        flight("3:C:n1:7") | {"attempts": {"3:C": "2"}},
        Completed(2, 0, False),
    ),
    "with the last claim, attempts of members that Redis has lost, and rubbish, are gone": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"attempts": {"7:C": "1", "rubbish": "x"}}, {}, Completed(2, 0, False)
    ),
    "what was marked meanwhile still waits, and is worth a tick": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}},
        {"queue:v2": {"1:A"}, "wake": TICK_SENT},
        Completed(2, 0, True),
    ),
    "no tick while one is on its way": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}, "wake": TICK_SENT},
        {"queue:v2": {"1:A"}, "wake": TICK_SENT},
        Completed(2, 0, False),
    ),
    "no tick while the database is away": Case(
        flight("1:A:n1:7", "2:B:n1:7") | {"queue:v2": {"1:A"}, "pause": "1"},
        {"queue:v2": {"1:A"}, "pause": "1"},
        Completed(2, 0, False),
    ),
    "no tick while the workers have their hands full": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7") | {"queue:v2": {"1:A"}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7") | {"queue:v2": {"1:A"}},
        Completed(2, 0, False),
    ),
    "a node from the future has no hands": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "e": NOW + 10 * SECOND + 1}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "e": NOW + 10 * SECOND + 1}},
        Completed(2, 0, False),
    ),
    "the hands of a node on the edge count": Case(
        flight("1:A:n1:7", "2:B:n1:7", "3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "d": NOW + 10 * SECOND}},
        flight("3:C:n1:7", "4:C:n1:7", "5:C:n1:7")
        | {"queue:v2": {"1:A"}, "nodes": {"a": NOW, "d": NOW + 10 * SECOND}, "wake": TICK_SENT},
        Completed(2, 0, True),
    ),
    "a claim that was recovered changes nothing and says so": Case(
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "1"}, "wake": TICK_SENT},
        {"queue:v2": {"1:A", "2:B"}, "attempts": {"1:A": "1"}, "wake": TICK_SENT},
        Completed(0, 2, False),
    ),
    "a claim that was recovered and claimed again belongs to the other": Case(
        flight("1:A:n2:8", "2:B:n1:7") | {"attempts": {"1:A": "1"}},
        flight("1:A:n2:8") | {"attempts": {"1:A": "1"}},
        Completed(1, 1, False),
    ),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_mark_complete(name: str, redis: Redis, faked: Faked) -> None:
    case = COMPLETE[name]
    assert played(redis, case, lambda: faked[0].complete(case.claim)) == case.result


def test_a_claim_of_many_pages_asks_for_a_tick_with_its_last_page_only(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an earlier page asked, the reply of the last page would hide it, and no tick would come."""
    queue, _ = queue_with_clock(redis, fanout=4, depth=1, rest=0.0)
    queue.mark(waiting(29))
    claim = queue.claim("me", 4).claim
    queue.tick_has_ended()
    monkeypatch.setattr("harbor_refresh.tasks.queue.sets.pages.__defaults__", (2,))
    assert queue.complete(claim) == Completed(4, 0, True)
