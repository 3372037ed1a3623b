"""Actions to begin with, and what is compared of them."""

from typing import Any

from django.db import connection

from harbor_refresh.executions.actions.bulk import ask
from harbor_refresh.executions.models import Action
from harbor_refresh.executions.models.operations import Origin, Verb
from harbor_refresh.executions.queries.filters import Filter


def asked(verb: Verb = Verb.STOP, origin: Origin = Origin.API, **chosen: Any) -> Action:
    return ask(verb, Filter(**chosen), by="a test", origin=origin, everything=not chosen)


def result(action: Action) -> dict[str, Any]:
    """The state and the counts that are not zero."""
    action.refresh_from_db()
    counts = {name: getattr(action, name) for name in ("changed", "skipped", "failed")}
    assert action.done == sum(counts.values())
    return {"state": action.state, **{name: count for name, count in counts.items() if count}}


def lease_runs_out(action: Action) -> None:
    """As if its process had been silent for longer than the lease."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE execution_action SET held_until = clock_timestamp() - interval '1 s' WHERE id = %s",
            [action.pk],
        )
