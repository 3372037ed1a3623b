"""Fairness: the turns of jobs that are written together (sql/schema/turn_functions.sql). An execution that is
started behind a million jobs takes turns with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.text import is_number, is_text, shown
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.models.terms import MAX_KEY, Terms

#: A turn of an execution of weight 1.
TURN = 1_000_000
LIGHTEST, HEAVIEST = 0.001, 1_000
#: So many lines are remembered. Of any others the next turn is asked again, so that memory stays bounded.
MOST_LINES = 10_000


@dataclass
class Turns:
    """The turns of jobs that are written together: one after the other in each line. A line has a queue, a
    priority, a tenant, and the name and the key of a limit. `tenant` is that of new jobs."""

    weight: float = 1
    tenant: str | None = None
    _next: dict[tuple[Any, ...], int] = field(default_factory=dict, init=False)

    def give(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write the turn into these rows of jobs."""
        names = ["" if row["limit_key"] is None else row["name"] for row in rows]
        of_line = itemgetter("queue", "priority", "tenant", "limit_key")
        lines = [(*of_line(row), name) for row, name in zip(rows, names, strict=True)]
        if len(self._next) > MOST_LINES:
            self._next.clear()
        if missing := sorted(set(lines) - self._next.keys(), key=repr):
            columns = ("queues", "priorities", "tenants", "keys", "names")
            found = run("find_turns", **dict(zip(columns, map(list, zip(*missing, strict=True)), strict=True)))
            self._next.update(zip(missing, (turn for (turn,) in found), strict=True))
        for row, line in zip(rows, lines, strict=True):
            row["turn"] = self._next[line]
            self._next[line] += round(TURN / self.weight)


def turns_of(weight: float, fair_by: str | None) -> Turns:
    """Return the turns of a new execution. Raises Refused for a weight or a name that is none."""
    if not is_number(weight, LIGHTEST, HEAVIEST):
        raise Refused(f"weight takes a number from {LIGHTEST:g} to {HEAVIEST:,}, and got {shown(weight)}")
    if fair_by is not None and not is_text(fair_by, MAX_KEY, at_least=1):
        raise Refused(f"fair_by takes text of 1 to {MAX_KEY} characters, and got {shown(fair_by)}")
    return Turns(weight, fair_by)


def shared(execution_id: int) -> str:
    """Return the tenant of an execution that grows: its additions come after its own jobs that wait."""
    its = Terms.objects.filter(pk=execution_id).values_list("tenant", flat=True).first()
    return its or f"execution {execution_id}"
