"""The state in which each pass begins: stale rows, an empty Redis, every execution marked by the strategy."""

from benchmarks import stale_executions
from benchmarks.meters import RedisMeter
from benchmarks.screen import Screen
from benchmarks.servers import Servers
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.strategies import Strategy


def reset(servers: Servers, executions: int) -> None:
    servers.empty_redis()
    stale_executions.forget_refreshes(executions)


def mark(servers: Servers, strategy: Strategy, executions: int, screen: Screen, label: str) -> int:
    """Mark the first executions; return how many bytes of Redis's memory that takes."""
    meter = RedisMeter(servers.redis_url)
    try:
        # the first mark of a server allocates its script and its buffers; that memory is not counted
        strategy.mark(stale_executions.members(1, 1))
        servers.empty_redis()
        before = meter.used_memory()
        with screen.stage(f"{label}: marking", executions) as show:
            stale_executions.mark_all(strategy, executions, show)
        execution_queue().tick_has_ended()  # no tick was sent for the first mark
        return meter.used_memory() - before
    finally:
        meter.close()
