"""A live screen of the queue: one look a second, the last minute as a line, and what is wrong.

It goes on while a server is away, because that is when an operator needs it. With --json it prints a JSON object
for each look, for a program that follows it.
"""

import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.core.checks import CheckMessage
from django.core.management.base import OutputWrapper
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from harbor_refresh.executions.durations import age, ago, duration
from harbor_refresh.executions.management.output import Misused, printable
from harbor_refresh.tasks.checks.examination import findings
from harbor_refresh.tasks.checks.registry import told
from harbor_refresh.tasks.overview.state import State, look

BARS = "▁▂▃▄▅▆▇█"
#: Looks that the line of the past shows.
WIDTH = 60
#: More nodes than these are counted and not listed.
MOST_NODES = 8


def watch(options: dict[str, Any], stdout: OutputWrapper) -> None:
    """Show the state until Ctrl-C, or `times` times."""
    with suppress(KeyboardInterrupt):
        if options["json"]:
            for state in _looks(options):
                stdout.write(json.dumps(data(state)))
                stdout.flush()
        elif not stdout.isatty():
            raise Misused("--watch needs a terminal; with --json it prints a line for each look")
        else:
            _show(options, Console(highlight=False))  # Django's wrapper would add an end to each part of a line


def data(state: State) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **asdict(state),
        "absent": dict(state.absent),
        "findings": [told(finding) for finding in findings(state)],
    }


def _show(options: dict[str, Any], console: Console) -> None:
    past = Past()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for state in _looks(options):
            past.note(state)
            live.update(screen(state, past), refresh=True)


def _looks(options: dict[str, Any]) -> Iterator[State]:
    """Look at a steady pace. A look that takes long, because a server hangs, is not made up for."""
    left = options["times"]
    while left is None or left > 0:
        began = time.monotonic()
        yield look()
        if left is not None:
            left -= 1
        if left != 0:
            time.sleep(max(0.0, options["interval"] - (time.monotonic() - began)))


class Past:
    """The last looks: how the backlog moves. A look that found Redis away is a gap."""

    def __init__(self) -> None:
        self.backlogs: deque[tuple[float, int | None]] = deque(maxlen=WIDTH)

    def note(self, state: State, now: float | None = None) -> None:
        self.backlogs.append((time.monotonic() if now is None else now, state.backlog))

    def pace(self) -> float | None:
        """By how many executions a second the backlog has grown over ten looks; None if that is unknown."""
        known = [(at, count) for at, count in list(self.backlogs)[-10:] if count is not None]
        if len(known) < 2 or known[-1][0] <= known[0][0]:
            return None
        return (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])

    def trend(self) -> str:
        """Say how fast the backlog grows or shrinks, and when it will be empty."""
        pace, (_, backlog) = self.pace(), self.backlogs[-1]
        if pace is None or backlog is None or abs(pace) < 0.5:
            return ""
        if pace > 0:
            return f"grows by {pace:,.0f} a second"
        return f"shrinks by {-pace:,.0f} a second, empty in {duration(round(backlog / -pace))}"


def line(values: list[int | None]) -> str:
    """Draw the values as bars; a gap is a blank."""
    most = max((value for value in values if value), default=0)
    drawn = (" " if value is None else BARS[min(7, value * 7 // most) if most else 0] for value in values)
    return "".join(drawn)


def screen(state: State, past: Past) -> Group:
    title = Text.assemble(
        ("Harbor Refresh", "bold"), f"  {datetime.now(UTC):%H:%M:%S} UTC  ", ("Ctrl-C ends this", "dim")
    )
    return Group(title, Text(), _numbers(state, past), Text(), *_nodes(state), Text(), *_wrong(findings(state)))


def _numbers(state: State, past: Past) -> Table:
    backlogs = line([count for _, count in past.backlogs])
    made = Table.grid(Column(), Column(justify="right"), Column(overflow="ellipsis", no_wrap=True), padding=(0, 2))
    for name, value, meaning in (
        ("backlog", _number(state.backlog), Text.assemble((backlogs, "cyan"), "  ", past.trend())),
        ("in flight", _number(state.in_flight), "claimed and not finished"),
        ("failed before", _number(state.failed_before), "of these two, failed at least once"),
        ("quarantined", _number(state.quarantined), "set aside"),
        ("jobs that run", _number(state.jobs_in_progress), _messages(state)),
        ("dead letters", _number(state.dead_letters), "notifications that were given up"),
        ("oldest waiting", _waited(state.oldest_waiting), ""),
        ("last tick", ago(state.last_tick), "a worker looked for work"),
        ("last claim", ago(state.last_claim), "a worker claimed executions"),
        ("last reconcile", ago(state.last_reconcile), ""),
        ("beat sent", ago(state.beat_silent), ""),
        ("paused", _number(None if state.paused is None else len(state.paused)), ", ".join(state.paused or ())),
    ):
        made.add_row(name, value, meaning if isinstance(meaning, Text) else Text(meaning, "dim"))
    return made


def _messages(state: State) -> str:
    if state.messages is None:
        return "messages unknown"
    waiting = ", ".join(f"{name} {count:,}" for name, count in state.messages.items() if count)
    return f"messages: {waiting}" if waiting else "no message waits"


def _nodes(state: State) -> Iterator[Text]:
    if state.nodes is None:
        yield Text("nodes unknown", "dim")
        return
    yield Text(f"{len(state.nodes):,} nodes alive", "bold")
    for node in state.nodes[:MOST_NODES]:
        yield Text(f"{printable(node.name)}  heard {ago(node.silent)}")
    if len(state.nodes) > MOST_NODES:
        yield Text(f"and {len(state.nodes) - MOST_NODES:,} more", "dim")
    for node in (state.dead or ())[:MOST_NODES]:
        yield Text(f"{printable(node.name)}  died, heard {ago(node.silent)}", "red")


def _wrong(found: list[CheckMessage]) -> Iterator[Text]:
    if not found:
        yield Text("Nothing is wrong.", "green")
    for one in found:
        parts = told(one)
        style = "bold red" if one.is_serious() else "yellow"
        yield Text.assemble((printable(parts["what"]), style), f" {printable(parts['meaning'])}")
        yield Text.assemble(("  → ", "dim"), printable(parts["todo"]))


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _waited(seconds: float | None) -> str:
    """How long the oldest execution has waited; 0 if none waits."""
    return "unknown" if seconds is None else age(seconds) if seconds else "none"
