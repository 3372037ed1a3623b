"""The clock of the simulation, and the queues that form before a processor, a thread or a disk.

An actor is a generator that yields what it waits for: `(station, seconds)` for a service, `(None, seconds)` for
a delay. The same seed gives the same run: events of the same moment happen in the order in which they were
made.
"""

from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush, heapreplace
from itertools import count
from math import inf
from typing import Protocol

Done = Callable[[], None]


class Station(Protocol):
    """What serves one request after another. `busy` is the time that it has worked so far."""

    busy: float
    width: int

    def serve(self, seconds: float, done: Done) -> None:
        """Work for so long when it is this request's turn, then call `done`."""


Actor = Generator[tuple[Station | None, float], None, None]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Done]] = []
        self._numbers = count()

    def after(self, seconds: float, done: Done) -> None:
        heappush(self._events, (self.now + seconds, next(self._numbers), done))

    def start(self, actor: Actor) -> None:
        """Let the actor go on to its next wait, now."""
        wanted = next(actor, None)
        if wanted is None:
            return
        station, seconds = wanted

        def resume() -> None:
            self.start(actor)

        if station is None:
            self.after(seconds, resume)
        else:
            station.serve(seconds, resume)

    def run(self, until: float = inf) -> None:
        """Let events happen until none is left or the time is over."""
        while self._events and self._events[0][0] <= until:
            self.now, _, done = heappop(self._events)
            done()


class Line:
    """A line before `width` servers that finish what they begin: processors, a disk, a network."""

    def __init__(self, clock: Clock, width: int = 1) -> None:
        self.busy = 0.0
        self.width = width
        self._clock = clock
        self._free_at = [0.0] * width

    def serve(self, seconds: float, done: Done) -> None:
        self._clock.after(self.served_at(self._clock.now, seconds) - self._clock.now, done)

    def served_at(self, start: float, seconds: float) -> float:
        """Take the next place in the line at `start`; return when it is served."""
        end = max(start, self._free_at[0]) + seconds
        heapreplace(self._free_at, end)
        self.busy += seconds
        return end


class Cores:
    """Processors that take turns: a request longer than `quantum` goes back to the end of the line after it, so
    that short requests do not wait for long ones."""

    def __init__(self, clock: Clock, width: int, quantum: float) -> None:
        self.busy = 0.0
        self.width = width
        self._clock = clock
        self._quantum = quantum
        self._free = width
        self._urgent: deque[tuple[float, Done]] = deque()
        self._waiting: deque[tuple[float, Done]] = deque()

    def serve(self, seconds: float, done: Done) -> None:
        self._waiting.append((seconds, done))
        self._next()

    def serve_first(self, seconds: float, done: Done) -> None:
        """Serve it before all that wait: a process with a higher priority."""
        self._urgent.append((seconds, done))
        self._next()

    def _next(self) -> None:
        while self._free and (self._urgent or self._waiting):
            self._begin(*(self._urgent or self._waiting).popleft())

    def _begin(self, seconds: float, done: Done) -> None:
        self._free -= 1
        part = min(seconds, self._quantum)
        self.busy += part
        self._clock.after(part, lambda: self._ended(seconds - part, done))

    def _ended(self, left: float, done: Done) -> None:
        self._free += 1
        if left > 0:
            self._waiting.append((left, done))
        else:
            done()
        self._next()


class Thread:
    """One thread on processors that it shares with others: Redis on the machine of the measurements."""

    def __init__(self, cores: Cores) -> None:
        self.busy = 0.0
        self.width = 1
        self._cores = cores
        self._is_free = True
        self._waiting: deque[tuple[float, Done]] = deque()

    def serve(self, seconds: float, done: Done) -> None:
        self._waiting.append((seconds, done))
        self._next()

    def _next(self) -> None:
        if self._is_free and self._waiting:
            self._is_free = False
            seconds, done = self._waiting.popleft()
            self.busy += seconds
            self._cores.serve_first(seconds, lambda: self._ended(done))

    def _ended(self, done: Done) -> None:
        self._is_free = True
        done()
        self._next()
