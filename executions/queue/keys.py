"""The catalogue of keys. All share one prefix, which may carry a hash tag for Redis Cluster.

| key            | type   | holds                                                   | bounded by                 |
| -------------- | ------ | ------------------------------------------------------- | -------------------------- |
| `queue:v2`     | set    | `ID:VENDOR`, executions whose status may be out of date | the executions there are   |
| `processing`   | set    | `ID:VENDOR:NODE:TIMESTAMP`, claimed and not finished    | live nodes x share         |
| `attempts`     | hash   | `ID:VENDOR` → how often it failed                       | queue and processing       |
| `nodes`        | zset   | live nodes by their last sign of life                   | live nodes                 |
| `wake`         | string | a tick is on its way or was there a moment ago          | one, expires               |
| `pause`        | string | exists while the database is away                       | one, expires               |
| `stamp`        | string | the last stamp given                                    | one                        |
| `cursor`       | string | how far claims have gone through the queue              | one                        |
| `heat`         | hash   | `ID:VENDOR` → how long it rests, and since when         | 1,000, expires             |
| `marks`        | hash   | `ID:VENDOR` → how often it was marked while it waited   | 1,000, expires             |
| `lock`         | string | the token of who works a cycle (`lock` design only)     | one, expires               |
| `instances`    | zset   | `ID:NODE` by last sign of life (`hash` design only)     | live workers, expires      |
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Keys:
    prefix: str

    def __getattr__(self, name: str) -> str:
        if name not in _NAMES:
            raise AttributeError(name)
        return self.prefix + _NAMES[name]

    def named(self, *names: str) -> list[str]:
        return [self.prefix + _NAMES[name] for name in names]


_NAMES = {
    "queue": "queue:v2",
    "processing": "processing",
    "attempts": "attempts",
    "nodes": "nodes",
    "wake": "wake",
    "pause": "pause",
    "stamp": "stamp",
    "cursor": "cursor",
    "heat": "heat",
    "marks": "marks",
    "lock": "lock",
    "instances": "instances",
}
