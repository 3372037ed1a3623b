"""List the claims in flight: which node processes which execution."""

import heapq
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import Token, execution_id

HELP = "list the claims in flight with their nodes, the oldest first"


def arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--limit", type=positive_integer, default=50, metavar="N", help="with --claims: show the N oldest (50)"
    )


def answer(options: dict[str, Any]) -> Answer:
    queue = execution_queue()
    stats = queue.stats()
    tokens = set(queue.tokens())  # a scan may meet a token twice
    readable = [token for token in tokens if isinstance(token, Token)]
    unreadable = sorted(token for token in tokens if isinstance(token, bytes))
    oldest = heapq.nsmallest(options["limit"], readable, key=lambda one: (one.stamp, one.member))
    claims = [
        {
            "execution_id": execution_id(token.member),
            "vendor": token.member.partition(":")[2],
            "node": token.node,
            "state": "waits" if token.is_waiting else "works",
            "alive": token.node in stats.nodes,
            "claimed_at": datetime.fromtimestamp(token.stamp / 1_000_000, UTC).isoformat(),
            "age_seconds": round(max(0, stats.now - token.stamp) / 1_000_000, 3),
        }
        for token in oldest
    ]
    raw = [repr(token)[2:-1] for token in unreadable[: options["limit"]]]
    data = {
        "in_flight": len(readable),
        "claims": claims,
        "unreadable_count": len(unreadable),
        "unreadable": raw,
    }
    rows = [
        (
            str(claim["execution_id"]),
            claim["vendor"],
            claim["node"] if claim["alive"] else f"{claim['node']} (silent)",
            f"{claim['age_seconds']:,.1f} s",
            "waits for a worker" if claim["state"] == "waits" else "is worked on",
        )
        for claim in claims
    ]
    notes = [f"{len(claims):,} of {plural(len(readable), 'claim')} in flight."]
    if unreadable:
        notes.append(f"{plural(len(unreadable), 'token')} that cannot be read; recover drops them:")
        notes += [f"  {text}" for text in raw]
    shown = [table(("execution", "vendor", "node", "age", "state"), rows)] if rows else []
    return Answer(data, [*shown, *notes])
