"""The catalogue of keys. All share one prefix, which may carry a hash tag for Redis Cluster.

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
| `presence`     | hash   | since when heartbeats come without a gap; the server    | one, of three fields       |
| `jobs`         | hash   | job → its record in progress; empty field → the memory  | jobs begun and not ended   |
| `counts`       | hash   | what passes over the jobs have done, and when           | one, with fixed fields     |
| `deliverer`    | string | exists for a second after the deliverer was woken       | one, expires               |
| `instances`    | zset   | `ID:NODE` by its last heartbeat (`hash` design only)    | live workers, expires      |
"""


class Keys:
    def __init__(self, prefix: str) -> None:
        self.queue = prefix + "queue:v2"
        self.processing = prefix + "processing"
        self.attempts = prefix + "attempts"
        self.nodes = prefix + "nodes"
        self.wake = prefix + "wake"
        self.pause = prefix + "pause"
        self.stamp = prefix + "stamp"
        self.cursor = prefix + "cursor"
        self.heat = prefix + "heat"
        self.marks = prefix + "marks"
        self.presence = prefix + "presence"
        self.jobs = prefix + "jobs"
        self.counts = prefix + "counts"
        self.lock = prefix + "lock"
        self.deliverer = prefix + "deliverer"
        self.instances = prefix + "instances"

    def named(self, *names: str) -> list[str]:
        """Return these keys in the order that a script takes them."""
        return [getattr(self, name) for name in names]
