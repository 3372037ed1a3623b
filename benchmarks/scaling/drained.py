"""What a simulation found."""

from dataclasses import dataclass

#: A part that is busy for so long of the time is what limits.
LIMITING = 0.9
PROCESSES = "worker processes"


@dataclass(frozen=True)
class Drained:
    """`busy` has the share of the time in which each part works. `seconds` is None if the backlog never ends."""

    executions: int
    seconds: float | None
    busy: dict[str, float]
    redis_seconds: float = 0.0
    redis_commands: float = 0.0
    statements: float = 0.0
    most_in_flight: int = 0

    @property
    def per_second(self) -> float:
        return self.executions / self.seconds if self.seconds else 0.0

    @property
    def limit(self) -> str:
        """The part that is busy nearly all of the time. A process that waits for one counts as busy, too, so
        processes limit only if no other part does."""
        servers = {name: share for name, share in self.busy.items() if name != PROCESSES}
        name = max(servers, key=lambda one: servers[one])
        if servers[name] >= LIMITING:
            return name
        return PROCESSES if self.busy.get(PROCESSES, 0) >= LIMITING else "starting and waiting"
