"""What each step of a refresh costs, each with the measurement that it comes from.

The figures are of the machine of docs/benchmarks.md: two cores of AMD EPYC, which everything shares. `Costs()`
has all of them; a test replaces one and sees that the simulation no longer agrees with the measured times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import log10

MICRO = 1e-6
MILLI = 1e-3

#: Shares of the three scripts in the time of Redis: claim 1.08, take over 1.18, complete 0.41 µs a member
#: (docs/decisions/0020-a-token-says-whether-it-waits.md).
CLAIM, TAKE_OVER, COMPLETE = (one / (1.08 + 1.18 + 0.41) for one in (1.08, 1.18, 0.41))
#: Members in one script (tasks/queue/sets.py).
PAGE = 1_500


@dataclass(frozen=True)
class Costs:
    """Times in µs an execution, unless the name says otherwise.

    By size: between two measured sizes the cost grows evenly with each tenfold, and above the largest it goes
    on as between the last two. So above 10,000,000 the costs are guessed, and rather too high: what grows there
    is the share of memory that is in no cache, and that ends at all of it.
    """

    #: Redis, all three scripts: benchmarks, *Cost against backlog*, `claim`: 5.61, 8.77 and 16.4 s a million.
    scripts: Mapping[int, float] = field(
        default_factory=lambda: {100_000: 5.61, 1_000_000: 8.77, 10_000_000: 16.4}
    )
    #: PostgreSQL: benchmarks, *What the profiles showed*: 14 s a million. The growth is that of all but Redis
    #: between 1,000,000 and 10,000,000 with one task each: 20.8 and 31.2 µs on two cores, 9.05 and 16.4 of them
    #: Redis.
    postgres: Mapping[int, float] = field(default_factory=lambda: {1_000_000: 14, 10_000_000: 19.8})
    #: Python: the workers' 5 s a million, same section; 0.8 of it in the tick (reading, sorting and packing
    #: members).
    tick_python: float = 0.8
    work_python: float = 4.2

    #: A message of Celery: 11.3 commands (benchmarks, *Jobs*, plain Celery) …
    message_commands: float = 11.3
    #: … of 47 µs each: benchmarks, *The strategies*, `hash`: 0.282 s for 6,020 commands of clients.
    command: float = 47
    #: … and 2.21 ms of processor in all (*Jobs*, plain Celery); the rest is the worker's.
    message_milliseconds: float = 2.21
    #: To publish one in a batch: *Jobs*, plain Celery: 10,000 in 1.86 s.
    publish: float = 186
    #: From the first tick to the first refresh: *Cost against backlog*, 1,000 waiting: 0.132 s, 0.03 of them
    #: work.
    first_milliseconds: float = 100
    #: A commit waits for the disk. Guessed; measured times hardly depend on it.
    commit_milliseconds: float = 2

    #: Statements of a chunk, those that begin and end its transaction included; and what a tick asks. Counted.
    chunk_statements: float = 4
    tick_statements: float = 3
    #: Commands of Redis for one page of members in its three scripts, and for a heartbeat, as INFO counts them.
    page_commands: float = 17
    heartbeat_commands: float = 5
    #: To pass an event of one worker on to one other worker: docs/scaling.md, *How it was measured*.
    event: float = 6.4

    #: Bytes of Redis: a waiting member (benchmarks, *The strategies*: 54 MB a million), a token (0020).
    member_bytes: float = 54
    token_bytes: float = 101.7
    #: Bytes of one execution over the network of Redis, broker included, in the WAL, and in all tables with
    #: their indexes: docs/scaling.md, *How it was measured*. Of the tables a refresh reads the row of the
    #: execution and the entries of its four tasks in the index `task_rollup`.
    redis_bytes: float = 144
    wal_bytes: float = 679
    table_bytes: float = 1_753
    execution_bytes: float = 175
    index_bytes: float = 248
    #: To PostgreSQL and back: its id, of seven digits and a comma, in two statements and one answer.
    #: Calculated.
    postgres_bytes: float = 24

    def scripts_seconds(self, waiting: int) -> float:
        return by_size(self.scripts, waiting) * MICRO

    def postgres_seconds(self, rows: int) -> float:
        return by_size(self.postgres, rows) * MICRO

    @property
    def read_bytes(self) -> float:
        return self.execution_bytes + self.index_bytes

    @property
    def message_seconds(self) -> float:
        """The time of the broker for one message."""
        return self.message_commands * self.command * MICRO

    @property
    def message_python_seconds(self) -> float:
        """The time of the worker for one message."""
        return self.message_milliseconds * MILLI - self.message_seconds


def by_size(measured: Mapping[int, float], size: int) -> float:
    """Interpolate by the logarithm of the size; below the smallest size the cost stays."""
    sizes = sorted(measured)
    if size <= sizes[0]:
        return measured[sizes[0]]
    pairs = list(pairwise(sizes))
    low, high = next((pair for pair in pairs if size <= pair[1]), pairs[-1])
    share = log10(size / low) / log10(high / low)
    return measured[low] + share * (measured[high] - measured[low])
