"""The queue that most of these tests ask: its clock is moved by the test alone."""

import pytest

from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.redis_state import Clock, Redis, queue_with_clock


@pytest.fixture
def faked(redis: Redis) -> tuple[ExecutionQueue, Clock]:
    """Without heat, which has tests of its own (test_heat.py)."""
    return queue_with_clock(redis, chunk=2, depth=2, max_attempts=3, node_ttl=10.0, stale=300.0, rest=0.0)
