"""The lease of an action: one process works on it at a time, and writes its progress.

The lease is a holder and an end in the action's row, by the database's clock, as that of reconcile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harbor_refresh.executions.actions.bulk import LEASE, find
from harbor_refresh.executions.database import run
from harbor_refresh.executions.errors import LeaseLost
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import MAX_ERROR, State
from harbor_refresh.executions.text import made_storable


@dataclass(frozen=True)
class Done:
    """What was done with some executions. `errors`: why executions failed, one text for each."""

    changed: int = 0
    skipped: int = 0
    failed: int = 0
    errors: Sequence[str] = ()


@dataclass(frozen=True)
class HeldAction:
    """An action that this process works on, as it was when it was taken.

    What if two processes take it at once: the row's lock lets one of them. What if the process dies: the lease
    expires, and the next process goes on after the last page that was committed. What if it stands still and goes
    on: if another process has taken the action over, or has stopped it, the next write raises LeaseLost, and the
    work of that transaction is rolled back.
    """

    action: Action
    holder: str

    def note(self, cursor: int, done: Done) -> bool:
        """Write that the executions up to `cursor` are done; return whether the action is to stop. Call it last in
        the transaction of that work."""
        rows = run(
            "note_action",
            id=self.action.pk,
            holder=self.holder,
            lease=LEASE,
            cursor=cursor,
            changed=done.changed,
            failed=done.failed,
            skipped=done.skipped,
            error=_storable(done.errors[0]) if done.errors else "",
        )
        if not rows:
            raise LeaseLost(f"another process took over action {self.action.pk}, or it was stopped")
        is_asked: bool = rows[0][0]
        return is_asked

    def note_total(self, total: int) -> None:
        Action.objects.filter(pk=self.action.pk, holder=self.holder).update(total=total)

    def release(self, state: State, error: str = "") -> None:
        """Give the lease back. `state`: the action has ended so, or is to go on (RUNNING)."""
        run("release_action", id=self.action.pk, holder=self.holder, state=str(state), error=_storable(error))


def take(holder: str, action_id: int | None = None) -> HeldAction | None:
    """Take an action: this one, or the open one that was worked on the longest ago. None if there is none, or if
    another process works on it.

    Workers work on one action at a time, so that at most one of their processes is busy with them; an action of a
    terminal does not count. Two workers at the same moment may take two actions.
    """
    rows = run("take_action", id=action_id, holder=holder, lease=LEASE)
    return HeldAction(find(rows[0][0]), holder) if rows else None


def _storable(text: str) -> str:
    return made_storable(text)[:MAX_ERROR]
