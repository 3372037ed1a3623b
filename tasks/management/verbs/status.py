"""Show the state of the service, which is cheap at any size; the claims in flight; or the jobs in progress."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from harbor_refresh.executions.durations import age, ago
from harbor_refresh.executions.management.output import Answer, table
from harbor_refresh.tasks.checks.examination import problems
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.output import problem_text
from harbor_refresh.tasks.checks.registry import Shown, told
from harbor_refresh.tasks.management.verbs import claims, job_stats
from harbor_refresh.tasks.overview.state import State
from harbor_refresh.tasks.strategies import strategy

HELP = "show the queue, the live nodes, the jobs, the schedule, and what is wrong"


def arguments(parser: CommandParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--claims", action="store_true", help=claims.HELP)
    which.add_argument("--jobs", action="store_true", help=job_stats.HELP)
    claims.arguments(parser)


def answer(options: dict[str, Any]) -> Answer:
    """Show what is known, even if a server is away. Then the command fails, because the rest is unknown."""
    if options["claims"]:
        return claims.answer(options)
    if options["jobs"]:
        return job_stats.answer(options)
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
