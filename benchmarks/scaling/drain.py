"""Drain a backlog on paper: ticks claim, messages travel, processes refresh and complete, until nothing waits.

It follows the rules of tasks/pipeline/dispatcher.py and tasks/pacing.py:

1. A tick claims up to six chunks at a time while messages may be sent (SLOTS, or DEPTH a node) and the
   nodes have room (DEPTH chunks each). Then it ends. The first completion that leaves half of the room
   free sends the next one.
2. A process takes one message at a time: it takes the claim over, refreshes it in one transaction, and
   completes it.

Each service varies by up to a fifth, by the seed. A tick runs beside the processes and does not hold one of
them.
"""

from collections import deque
from random import Random

from benchmarks.scaling.costs import CLAIM, COMPLETE, MICRO, MILLI, PAGE, TAKE_OVER, Costs
from benchmarks.scaling.drained import PROCESSES, Drained
from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.signs_of_life import signs_of_life
from benchmarks.scaling.stations import Actor, Clock, Cores, Line, Station, Thread
from benchmarks.scaling.storage import reads_of_an_execution
from harbor_refresh.tasks.pacing import CHUNKS_TOGETHER, ENOUGH_ROOM, LEAST_CHUNK, SLOTS

#: The longest turn of a program on processors that it shares.
QUANTUM = 0.005
VARIATION = 0.2
#: A Redis that spends so much of its time on signs of life has none left for the work.
EXHAUSTED = 0.95


def drain(fleet: Fleet, executions: int, costs: Costs | None = None, seed: int = 1) -> Drained:
    """Simulate until all `executions` are refreshed. All of them wait at first, and the tables hold no others."""
    costs = costs or Costs()
    alive = signs_of_life(fleet, costs)
    if max(alive.values()) >= EXHAUSTED:
        return Drained(executions, None, {name: min(share, 1.0) for name, share in alive.items()})
    return _Run(fleet, executions, costs, alive, Random(seed)).result()  # noqa: S311 - not for secrets


class _Run:
    """The state of one simulation."""

    def __init__(
        self, fleet: Fleet, executions: int, costs: Costs, alive: dict[str, float], random: Random
    ) -> None:
        self.fleet, self.executions, self.costs, self._random = fleet, executions, costs, random
        self.clock = Clock()
        self._shared = Cores(self.clock, fleet.shared_cores, QUANTUM) if fleet.shared_cores else None
        self._redis: list[Station] = [self._redis_server() for _ in range(fleet.shards)]
        self._broker = self._redis_server() if fleet.has_own_broker else self._redis[0]
        self._postgres: Station = self._shared or Line(self.clock, fleet.database_cores * fleet.databases)
        self._disk, self._wal, self._network = (Line(self.clock, fleet.databases) for _ in range(3))
        self._queue_network = Line(self.clock, fleet.shards)
        self._slower = 1 / (1 - alive["Redis"])
        self._broker_slower = 1 / (1 - alive.get("broker", alive["Redis"]))
        self._alive = alive

        share, rest = divmod(executions, fleet.shards)
        self._waiting = [share + (number < rest) for number in range(fleet.shards)]
        self._in_flight = [0] * fleet.shards
        self._has_tick = [False] * fleet.shards
        self._messages: deque[tuple[int, int]] = deque()
        self._idle: list[int] = list(range(fleet.nodes))
        self._idle_since = [0.0] * fleet.nodes
        self._idle_seconds = 0.0
        self._done = 0
        self._redis_seconds = self._commands = self._statements = 0.0
        self._most_in_flight = 0

        self._scripts = costs.scripts_seconds(self._waiting[0])
        self._refresh = costs.postgres_seconds(executions // fleet.databases)
        self._reads = reads_of_an_execution(fleet, costs, executions)
        for shard in range(fleet.shards):
            self._send_tick(shard, costs.first_milliseconds * MILLI)
        self.clock.run()

    def _redis_server(self) -> Station:
        return Thread(self._shared) if self._shared else Line(self.clock)

    def result(self) -> Drained:
        seconds = self.clock.now
        self._idle_seconds += sum(seconds - since for since in self._idle_since)
        busy = {
            "Redis": max(one.busy for one in self._redis) / seconds + self._alive["Redis"],
            "PostgreSQL's processors": self._postgres.busy / self._postgres.width / seconds,
            "PostgreSQL's reads": self._disk.busy / self._disk.width / seconds,
            "the WAL": self._wal.busy / self._wal.width / seconds,
            "PostgreSQL's network": self._network.busy / self._network.width / seconds,
            "Redis's network": self._queue_network.busy / self._queue_network.width / seconds,
            PROCESSES: 1 - self._idle_seconds / self.fleet.nodes / seconds,
        }
        if self.fleet.has_own_broker:
            busy["broker"] = self._broker.busy / seconds + self._alive["broker"]
        alive = self.fleet.nodes / 2 * seconds
        return Drained(
            self.executions,
            seconds,
            {name: min(1.0, share) for name, share in busy.items()},
            self._redis_seconds + alive * self.costs.command * MICRO,
            self._commands + alive * self.costs.heartbeat_commands,
            self._statements,
            self._most_in_flight,
        )

    # -- services

    def _varied(self, seconds: float) -> float:
        return seconds * self._random.uniform(1 - VARIATION, 1 + VARIATION)

    def _scripts_of(self, shard: int, members: int, part: float) -> tuple[Station, float]:
        """Run the pages of one script."""
        seconds = self._varied(members * self._scripts * part)
        self._redis_seconds += seconds
        return self._redis[shard], seconds * self._slower

    def _message(self) -> tuple[Station, float]:
        seconds = self._varied(self.costs.message_seconds)
        self._redis_seconds += seconds
        return self._broker, seconds * self._broker_slower

    def _python(self, seconds: float, members: int) -> tuple[Station | None, float]:
        """Work in a process of its own core, and wait for the answers to pages of members."""
        trips = -(-members // PAGE) * self.fleet.round_trip
        return self._shared, self._varied(seconds) + trips

    def _disk_and_network(self, members: int) -> float:
        """Return how long the bytes of a chunk wait for PostgreSQL's disk and for the two networks."""
        costs, fleet, now = self.costs, self.fleet, self.clock.now
        reads = self._reads * members
        written = members * costs.wal_bytes
        moment = self._queue_network.served_at(now, members * costs.redis_bytes / fleet.network_bytes)
        moment = self._disk.served_at(moment, reads / fleet.disk_reads)
        moment = self._wal.served_at(moment, self._varied(written / fleet.wal_bytes))
        sent = members * costs.postgres_bytes + written * (1 + fleet.replicas)
        return self._network.served_at(moment, sent / fleet.network_bytes) - now

    # -- actors

    def _send_tick(self, shard: int, delay: float) -> None:
        self._has_tick[shard] = True
        self.clock.after(delay, lambda: self.clock.start(self._tick(shard)))

    def _tick(self, shard: int) -> Actor:
        """Claim and publish until there is nothing to claim, or no room."""
        self._statements += self.costs.tick_statements
        while members := self._claimable(shard):
            size = self._chunk_size(shard)
            self._waiting[shard] -= members
            self._in_flight[shard] += members
            self._most_in_flight = max(self._most_in_flight, sum(self._in_flight))
            yield self._scripts_of(shard, members, CLAIM)
            python = members * self.costs.tick_python + -(-members // size) * self.costs.publish
            yield self._python(python * MICRO, members)
            self._commands += members / PAGE * self.costs.page_commands
            for start in range(0, members, size):
                self._messages.append((shard, min(size, members - start)))
            while self._messages and self._idle:
                self._begin(self._idle.pop())
        self._has_tick[shard] = False

    def _claimable(self, shard: int) -> int:
        """How many members a claim takes: no more than may be sent, have room, and wait."""
        fleet = self.fleet
        room = fleet.nodes * fleet.depth * fleet.chunk - self._in_flight[shard]
        if self._in_flight[shard] and room < min(fleet.chunk, self._waiting[shard]):
            return 0
        slots = max(SLOTS, fleet.nodes * fleet.depth) - len(self._messages)
        together = min(slots * self._chunk_size(shard), CHUNKS_TOGETHER * fleet.chunk)
        return max(0, min(together, room, self._waiting[shard]))

    def _chunk_size(self, shard: int) -> int:
        fleet = self.fleet
        return min(fleet.chunk, max(LEAST_CHUNK, -(-self._waiting[shard] // (2 * fleet.nodes))))

    def _begin(self, process: int) -> None:
        self._idle_seconds += self.clock.now - self._idle_since[process]
        self.clock.start(self._process(process))

    def _process(self, process: int) -> Actor:
        """Refresh one chunk after another while messages wait."""
        while self._messages:
            shard, members = self._messages.popleft()
            yield from self._chunk(shard, members)
            self._end(shard, members)
        self._idle.append(process)
        self._idle_since[process] = self.clock.now

    def _chunk(self, shard: int, members: int) -> Actor:
        costs = self.costs
        yield self._message()
        yield self._scripts_of(shard, members, TAKE_OVER)
        python = costs.message_python_seconds + members * costs.work_python * MICRO
        yield self._python(python, 2 * members)
        yield self._postgres, self._varied(members * self._refresh)
        storage = 0.0 if self._shared else self._disk_and_network(members)
        yield None, storage + self._varied(costs.commit_milliseconds * MILLI)
        yield self._scripts_of(shard, members, COMPLETE)
        self._commands += costs.message_commands
        self._statements += costs.chunk_statements

    def _end(self, shard: int, members: int) -> None:
        """The claim is complete; the process sends the next tick if half of the room is free."""
        fleet = self.fleet
        self._done += members
        self._in_flight[shard] -= members
        room = fleet.nodes * fleet.depth * fleet.chunk
        has_room = self._in_flight[shard] <= room * (1 - ENOUGH_ROOM)
        if self._waiting[shard] and has_room and not self._has_tick[shard]:
            self._send_tick(shard, self.costs.message_milliseconds * MILLI)
