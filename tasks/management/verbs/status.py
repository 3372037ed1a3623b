"""Show the state of the service, which is cheap at any size; the claims in flight; or the jobs in progress."""

import heapq
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.durations import age, ago
from harbor_refresh.executions.management.argument_types import positive_integer
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.examination import problems
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import problem_text
from harbor_refresh.tasks.checks.registry import Shown, told
from harbor_refresh.tasks.jobs.queries import overview
from harbor_refresh.tasks.overview.state import State
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.members import Token, execution_id
from harbor_refresh.tasks.strategies import strategy

HELP = "show the queue, the live nodes, the jobs, the schedule, and what is wrong"
MOST_WORKERS = 50
#: What the counts of jobs mean.
MEANINGS = {
    "waiting": "their turn has not come, or the broker holds enough",
    "in_chains": "of these, wait for the job before them",
    "later": "of these, wait for their time",
    "limited": "of these, wait for their limit",
    "sent": "are with the broker, or were fetched by a worker",
    "running": "run",
    "unreported": "have a report that the target of the hook has not taken",
}


def arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--claims", action="store_true", help="list the claims in flight with their nodes, the oldest first"
    )
    which.add_argument(
        "--jobs",
        action="store_true",
        help="count the unfinished jobs by state, and show the workers that run them",
    )
    parser.add_argument(
        "--limit", type=positive_integer, default=50, metavar="N", help="with --claims: show the N oldest (50)"
    )


def answer(options: dict[str, Any]) -> Answer:
    if options["claims"]:
        return _claims(options["limit"])
    return _jobs() if options["jobs"] else _state()


def _state() -> Answer:
    """Show what is known, even if a server is away. Then the command fails, because the rest is unknown."""
    facts = Facts()
    found = sorted(problems(Shown.DASHBOARD, facts), key=lambda one: not one.is_serious())
    state, design = facts.state, strategy()
    is_elsewhere = not design.marks_on_queue and "redis" not in state.absent
    backlog = design.backlog() if is_elsewhere else state.backlog
    data = {**asdict(state), "backlog": backlog, "findings": [told(one) for one in found]}
    parts = ((("", "count", ""), [*_counts(state, backlog)]), (("", "", ""), [*_times(state)]))
    shown = [table(columns, rows) for columns, rows in parts if rows]
    notes: list[Any] = []
    if state.in_process:
        notes.append("The interval is 0 or less: the reporting process refreshes, and the queue is not used.")
    if design.runs_cycles:
        notes.append(f"The strategy is {design.name}.")
    notes += [problem_text(one) for one in found] or ["Nothing is wrong."]
    failure = "; ".join(reason for server, reason in state.absent.items() if server != "broker")
    return Answer(data, [*shown, *notes], failure)


def _counts(state: State, backlog: int | None) -> Iterator[tuple[str, Any, str]]:
    """Count what each server knows that answers."""
    if "redis" not in state.absent:
        yield "backlog", backlog, "wait to be claimed"
        yield "in flight", state.in_flight, "claimed and not finished"
        yield "failed before", state.failed_before, "of these two, failed at least once"
        nodes = sorted(node.name for node in state.nodes or ())
        yield "live nodes", len(nodes), ", ".join(nodes) or "no worker sends a heartbeat"
    if "broker" not in state.absent:
        messages = state.messages or {}
        waiting = ", ".join(f"{name} {count:,}" for name, count in messages.items() if count)
        yield "messages", sum(messages.values()), waiting or "none waits with the broker"
    if "database" not in state.absent:
        yield "quarantined", state.quarantined, "set aside: harbor quarantine"
        yield "running jobs", state.jobs_in_progress, "harbor status --jobs"
        yield "dead letters", state.dead_letters, "notifications that were given up"


def _times(state: State) -> Iterator[tuple[str, str, str]]:
    """Say how long ago the parts worked."""
    if "redis" not in state.absent:
        oldest = state.oldest_waiting
        waited = "unknown" if oldest is None else age(oldest) if oldest else "none waits"
        yield "oldest", waited, "on the queue"
        yield "last tick", ago(state.last_tick), "a worker looked for work"
        yield "last claim", ago(state.last_claim), "a worker claimed executions"
    if "database" not in state.absent:
        yield "last reconcile", ago(state.last_reconcile), "the last complete pass began"
    if state.schedule is not None:
        yield "beat", ago(state.beat_silent), "sent a task"


def _claims(limit: int) -> Answer:
    queue = execution_queue()
    stats = queue.stats()
    tokens = set(queue.tokens())  # a scan may meet a token twice
    readable = [token for token in tokens if isinstance(token, Token)]
    unreadable = sorted(token for token in tokens if isinstance(token, bytes))
    claims, rows = [], []
    for token in heapq.nsmallest(limit, readable, key=lambda one: (one.stamp, one.member)):
        pk, vendor, is_alive = (
            execution_id(token.member),
            token.member.partition(":")[2],
            token.node in stats.nodes,
        )
        seconds = max(0, stats.now - token.stamp) / 1_000_000
        claims.append(
            {
                "execution_id": pk,
                "vendor": vendor,
                "node": token.node,
                "state": "waits" if token.is_waiting else "works",
                "alive": is_alive,
                "claimed_at": datetime.fromtimestamp(token.stamp / 1_000_000, UTC),
                "age_seconds": round(seconds, 3),
            }
        )
        node = token.node if is_alive else f"{token.node} (silent)"
        state = "waits for a worker" if token.is_waiting else "is worked on"
        rows.append((str(pk), vendor, node, f"{seconds:,.1f} s", state))
    raw = [repr(token)[2:-1] for token in unreadable[:limit]]
    data = {"in_flight": len(readable), "claims": claims, "unreadable_count": len(unreadable), "unreadable": raw}
    notes = [f"{len(claims):,} of {plural(len(readable), 'claim')} in flight."]
    if unreadable:
        notes.append(f"{plural(len(unreadable), 'token')} that cannot be read; recover drops them:")
        notes += [f"  {text}" for text in raw]
    shown = [table(("execution", "vendor", "node", "age", "state"), rows)] if rows else []
    return Answer(data, [*shown, *notes])


def _jobs() -> Answer:
    counts, nodes = overview()
    nodes.sort(key=lambda one: -one["running"])
    rows = [(what.replace("_", " "), count, MEANINGS[what]) for what, count in counts.items()]
    shown: list[Any] = [table(("", "jobs", ""), rows)]
    workers = [
        (one["name"] + " (silent)" * one["is_suspected"], one["running"], one["slots"], ", ".join(one["queues"]))
        for one in nodes[:MOST_WORKERS]
    ]
    if workers:
        shown += ["", table(("worker", "runs", "of", "queues"), workers)]
    if len(nodes) > MOST_WORKERS:
        shown.append(f"… and {plural(len(nodes) - MOST_WORKERS, 'worker')} more.")
    return Answer({**counts, "nodes": nodes}, shown)
