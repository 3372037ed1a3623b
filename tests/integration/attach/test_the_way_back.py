"""Workers that have ended, and what they leave: `harbor marks export --set` puts each of their claims back into
Harbor's set, where its cores take it."""

import pytest
from redis import Redis

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks.pipeline.legacy_marks import legacy_marks
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.keys import HARBORS_SET
from tests.integration.command_output import data, said

OURS = "cache:execution:refresh:"

# in this process


@pytest.mark.usefixtures("attached")
def test_an_export_of_the_set_moves_the_claims_and_leaves_the_marks_of_harbor(redis: Redis) -> None:
    """One claim waits, one is in progress, one is of an execution that Harbor has marked again."""
    queue = execution_queue()
    queue.mark(["1:A", "2:B", "3:C"])
    claim = queue.claim("me", 10).claim
    in_progress = queue.take_over(claim.only(["2:B"]), "other")
    redis.hset(f"{OURS}attempts", "1:A", 2)
    redis.sadd(HARBORS_SET, "3:C", "4:D", "of another program")
    queue.leave("me")
    queue.leave("other")
    assert data("harbor", "marks", "export", "--set") == {"moved": 3, "left": 0}
    assert redis.smembers(HARBORS_SET) == {b"1:A", b"2:B", b"3:C", b"4:D", b"of another program"}
    assert not redis.exists(f"{OURS}processing", f"{OURS}attempts")
    assert {one for one, _ in queue.oldest_waiting(10)} == {"1:A", "2:B", "3:C"}
    assert queue.complete(in_progress).claim_expired == 1
    late = Claim.from_message(claim.to_message())
    assert queue.take_over(late, "late").members == (), "its message finds the tokens gone"
    assert said("harbor", "marks", "export", "--set") == "Turned 0 executions into marks of Harbor."


@pytest.mark.usefixtures("attached")
def test_an_export_to_a_set_that_redis_refuses_to_write_leaves_the_claims(redis: Redis) -> None:
    queue = execution_queue()
    queue.mark(["1:A"])
    queue.claim("me", 1)
    before = redis.smembers(f"{OURS}processing")
    redis.set(HARBORS_SET, "of another program")
    with pytest.raises(QueueUnavailable, match="WRONGTYPE"):
        list(legacy_marks().export(as_set=True))
    assert redis.smembers(f"{OURS}processing") == before


# in processes
