"""What the cycles of the older designs share: one execution after the other, and one word at the end."""

from collections.abc import Callable, Iterable

from executions.errors import DatabaseAway
from executions.rollup import Refreshed
from tasks import signals
from tasks.queue import members as names
from tasks.strategies.one_by_one import refresh_one
from tasks.strategies.strategy import Strategy

Done = Callable[[str], None]


def told(strategy: Strategy, run: Callable[[Refreshed], None]) -> Refreshed:
    """Run a cycle, which adds to the outcome as it goes, and tell what came of it. A database that goes away
    ends it there."""
    outcome = Refreshed()
    try:
        run(outcome)
    except DatabaseAway as exc:
        signals.database_away.send(sender=type(strategy), count=strategy.backlog(), error=str(exc))
    signals.refreshed.send(sender=type(strategy), outcome=outcome)
    return outcome


def one_after_the_other(
    members: Iterable[str],
    outcome: Refreshed,
    *,
    done: Done,
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Refresh these, each in the way of the original; call `done` for each that need not come again."""
    for member in members:
        if not go_on():
            return
        one = refresh_one(names.execution_id(member))
        outcome += one
        if not one.failed:
            done(member)
