"""The catalogue of keys. All share one prefix, which may carry a hash tag for Redis Cluster.

Attached to a running Harbor, the queue is the set of Harbor's cores, and the other keys are ours.

| key            | type   | holds                                                   | bounded by                 |
| -------------- | ------ | ------------------------------------------------------- | -------------------------- |
| `queue:v2`     | set    | `ID:VENDOR`, executions whose status may be out of date | the executions there are   |
| `processing`   | set    | `ID:VENDOR:NODE:TIMESTAMP`, claimed and not finished    | live nodes x share         |
| `attempts`     | hash   | `ID:VENDOR` → how often it failed                       | queue and processing       |
| `nodes`        | zset   | live nodes by their last heartbeat                      | live nodes                 |
| `wake`         | string | a tick was sent or ran a moment ago                     | one, expires               |
| `pause`        | string | exists while the database is away                       | one, expires               |
| `stamp`        | string | the last stamp issued                                   | one                        |
| `cursor`       | string | where the last claim stopped scanning the queue         | one                        |
| `heat`         | hash   | `ID:VENDOR` → how long it rests, and since when         | 1,000, expires             |
| `marks`        | hash   | `ID:VENDOR` → how often it was marked while it waited   | 1,000, expires             |
| `lock`         | string | the token of the worker in a cycle (`lock` design only) | one, expires               |
| `waiting`      | zset   | `ID:VENDOR` by when it was put on the queue             | 1,000 of the queue         |
| `ticked`       | string | when a tick last looked for work                        | one                        |
| `left`         | zset   | nodes that stopped by themselves, by when they did      | 1,000                      |
| `dead`         | zset   | nodes that fell silent, by their last heartbeat         | 100                        |
| `search`       | hash   | the search for lost messages after the last death       | one, of three fields       |
| `presence`     | hash   | since when heartbeats come without a gap; the server    | one, of three fields       |
| `jobs`         | hash   | job → its record in progress; empty field → the memory  | jobs begun and not ended   |
| `arguments`    | hash   | job → what it asked for, until the database has it      | jobs that ask, 60 kB each  |
| `counts`       | hash   | what passes over the jobs have done, and when           | one, with fixed fields     |
| `deliverer`    | string | exists for a second after the deliverer was woken       | one, expires               |
| `queues`       | zset   | queue of the broker → when a worker last said it takes  | 1,000, of a week           |
| `traces`       | hash   | `ID:VENDOR` → trace contexts of its latest reports      | 500 of 4 each, expires     |
| `broker`       | string | since when the broker has kept its messages             | one                        |
| `instances`    | zset   | `ID:NODE` by its last heartbeat (`hash` design only)    | live workers, expires      |
| `legacy`       | hash   | how far ticks have looked for Harbor's own marks        | one, of three fields       |
"""

from harbor_refresh.executions.attached.attachment import is_attached

#: The type of each key. A key of another type is not ours (`ExecutionQueue.drop_foreign_keys`).
KINDS = {
    "queue": "set",
    "processing": "set",
    "attempts": "hash",
    "nodes": "zset",
    "wake": "string",
    "pause": "string",
    "stamp": "string",
    "cursor": "string",
    "heat": "hash",
    "marks": "hash",
    "lock": "string",
    "waiting": "zset",
    "ticked": "string",
    "left": "zset",
    "dead": "zset",
    "search": "hash",
    "presence": "hash",
    "jobs": "hash",
    "arguments": "hash",
    "counts": "hash",
    "deliverer": "string",
    "queues": "zset",
    "traces": "hash",
    "broker": "string",
    "instances": "zset",
    "legacy": "hash",
}
#: Keys that stop something for as long as they exist.
EXPIRING = frozenset({"wake", "pause", "lock", "deliverer"})
#: The set in which the cores of a running Harbor mark executions, and from which they take them, without a prefix.
HARBORS_SET = "execution:status_outdate"


def queue_key(prefix: str) -> str:
    """Return the key of the queue: Harbor's own set if we are attached to it, so that Harbor's marks are on it."""
    return HARBORS_SET if is_attached() else prefix + "queue:v2"


class Keys:
    def __init__(self, prefix: str) -> None:
        self.queue = queue_key(prefix)
        self.processing = prefix + "processing"
        self.attempts = prefix + "attempts"
        self.nodes = prefix + "nodes"
        self.wake = prefix + "wake"
        self.pause = prefix + "pause"
        self.stamp = prefix + "stamp"
        self.cursor = prefix + "cursor"
        self.heat = prefix + "heat"
        self.marks = prefix + "marks"
        self.waiting = prefix + "waiting"
        self.ticked = prefix + "ticked"
        self.left = prefix + "left"
        self.dead = prefix + "dead"
        self.search = prefix + "search"
        self.presence = prefix + "presence"
        self.jobs = prefix + "jobs"
        self.arguments = prefix + "arguments"
        self.counts = prefix + "counts"
        self.lock = prefix + "lock"
        self.deliverer = prefix + "deliverer"
        self.queues = prefix + "queues"
        self.instances = prefix + "instances"
        self.traces = prefix + "traces"
        self.legacy = prefix + "legacy"
        self.broker = prefix + "broker"

    def named(self, *names: str) -> list[str]:
        """Return these keys in the order that a script takes them."""
        return [getattr(self, name) for name in names]
