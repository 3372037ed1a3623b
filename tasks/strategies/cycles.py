"""What the cycles of the older designs share: refresh one execution after another, and signal the outcome."""

from collections.abc import Callable, Iterable

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.rollup import Refreshed
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.queue import members as names
from harbor_refresh.tasks.strategies.original_refresh import refresh_one
from harbor_refresh.tasks.strategies.strategy import Strategy

Done = Callable[[str], None]


def run_and_signal(strategy: Strategy, run: Callable[[Refreshed], None]) -> Refreshed:
    """Run a cycle, which adds to the outcome as it goes, and signal the outcome. A database that goes away ends
    the cycle."""
    outcome = Refreshed()
    try:
        run(outcome)
    except DatabaseAway as exc:
        signals.database_away.send(sender=type(strategy), count=strategy.backlog(), error=str(exc))
    signals.refreshed.send(sender=type(strategy), outcome=outcome)
    return outcome


def refresh_each(
    members: Iterable[str],
    outcome: Refreshed,
    *,
    done: Done,
    may_continue: Callable[[], bool] = lambda: True,
) -> None:
    """Refresh these members as the original does. Call `done` for each that did not fail."""
    for member in members:
        if not may_continue():
            return
        refreshed = refresh_one(names.execution_id(member))
        outcome += refreshed
        if not refreshed.failed:
            done(member)
