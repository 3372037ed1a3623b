"""Before each pass: the rows stale again, Redis empty, everything marked by the strategy that is next."""

from django.utils.module_loading import import_string

from benchmarks import data
from benchmarks.ground import Ground
from benchmarks.meters import RedisMeter
from benchmarks.screen import Screen
from executions.queue import execution_queue
from executions.strategies import STRATEGIES, Strategy


def made(name: str) -> Strategy:
    """That strategy, in this process, whatever its settings name."""
    strategy: Strategy = import_string(STRATEGIES[name])()
    return strategy


def stale_again(ground: Ground, executions: int) -> None:
    ground.empty_redis()
    data.forget_refreshes(executions)


def marked(ground: Ground, strategy: Strategy, executions: int, screen: Screen, label: str) -> int:
    """Mark the first so many executions; how many bytes of Redis's memory that takes."""
    meter = RedisMeter(ground.redis_url)
    try:
        strategy.mark(data.members(1, 1))  # what the first mark of a server costs once: its script, its buffers
        ground.empty_redis()
        before = meter.used_memory()
        with screen.stage(f"{label}: marking", executions) as show:
            data.mark_all(strategy, executions, show)
        execution_queue().forget_wake()  # the tick that the first mark asks for was never sent
        return meter.used_memory() - before
    finally:
        meter.close()
