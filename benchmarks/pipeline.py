"""`claim+celery`, the first pass: workers and a beat drain the backlog."""

from argparse import Namespace
from time import monotonic, sleep

from benchmarks.crew import Crew
from benchmarks.errors import BenchError
from benchmarks.figures import Meters
from benchmarks.ground import Ground
from benchmarks.schedule import running_schedule
from benchmarks.screen import Show
from executions.queue import execution_queue
from tasks import wakeup

LOOK_SECONDS = 0.02
STALLED_SECONDS = 60
START_SECONDS = 60
CALM_SECONDS = 1


def drain(ground: Ground, options: Namespace, meters: Meters, show: Show) -> tuple[bool, int]:
    """From the tick that begins it until nothing is queued and nothing in flight.

    The workers are ready by then, like the nodes of the other strategies at their `go`: that they have to be
    started belongs to no backlog. Until then the queue is paused, as it is while a database is away.

    Whether the budget ended it, and how many refreshes the workers have logged.
    """
    redis, pause = meters.redis.client, execution_queue().keys.pause
    redis.set(pause, 1)
    with running_schedule(), Crew(ground, options.workers, options.concurrency) as crew:
        _wait_until_ready(crew, options.workers * options.concurrency)
        meters.start(crew.pids)
        redis.delete(pause)
        wakeup.send_tick()
        cut = _drain(crew, options, meters, show)
    return cut, crew.refreshed()[0]


def _wait_until_ready(crew: Crew, nodes: int) -> None:
    """Every process gives signs of life, and whatever it does at its start is done."""
    deadline = monotonic() + START_SECONDS
    while len(execution_queue().stats().nodes) < nodes:
        if (fallen := crew.fallen()) or monotonic() > deadline:
            raise BenchError(fallen or f"The workers were not ready after {START_SECONDS} s.")
        sleep(LOOK_SECONDS)
    sleep(CALM_SECONDS)


def _drain(crew: Crew, options: Namespace, meters: Meters, show: Show) -> bool:
    keys = execution_queue().keys
    redis = meters.redis.client
    n = left = options.executions
    began = moved = monotonic()
    while left:
        now = monotonic()
        if (fallen := crew.fallen()) or now - moved > STALLED_SECONDS:
            raise BenchError(fallen or f"Nothing moved for {STALLED_SECONDS} s, {left:,} executions are left.")
        with redis.pipeline(transaction=False) as pipe:
            pipe.scard(keys.queue)
            pipe.scard(keys.processing)
            backlog, in_flight = pipe.execute()
        meters.redis.uncounted("scard", "scard")
        if backlog + in_flight != left:
            left, moved = backlog + in_flight, now
            show(n - left)
        if left and now - began > options.budget:
            meters.stop(end=lambda: crew.stop(firmly=False))
            return True
        if left:
            sleep(LOOK_SECONDS)
    meters.stop(end=crew.stop)
    return False
