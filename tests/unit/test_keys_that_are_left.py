"""Each key of ours either stays when all work is done, or ends with it."""

from harbor_refresh.tasks.queue.keys import KINDS
from tests.faults.conftest import END_WITH_THE_WORK, STAY


def test_the_check_for_leaked_keys_knows_each_key() -> None:
    """A key that it does not know would fail a soak after half an hour."""
    assert KINDS.keys() == STAY | END_WITH_THE_WORK
    assert not STAY & END_WITH_THE_WORK
