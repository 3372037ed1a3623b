"""The figures of a run, what they must be, and how they are shown."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

BROKER_LIMIT = 1_000
STATEMENTS_LIMIT = 0.01
TIMES_FASTER = 20
DISTURBED = 0.1


@dataclass(frozen=True)
class Line:
    what: str
    got: str
    must: str
    holds: bool


def lines(figures: dict[str, Any]) -> list[Line]:
    """What the benchmark promises, each with what was measured."""
    n = figures["executions"]
    statements = figures["sql_statements_per_execution"]
    ratio = figures["ratio"]
    broker = max(figures["longest_in_broker"].values())
    return [
        Line("executions lost", f"{figures['lost']:,}", "0", figures["lost"] == 0),
        Line(
            "invariants broken",
            "; ".join(figures["violations"]) or "none",
            "none",
            not figures["violations"],
        ),
        Line(
            "refreshes, by the log",
            f"{figures['refreshes']:,} and {figures['refreshes_failed']:,} failed",
            f"{n:,}, none twice",
            figures["refreshes"] == n and not figures["refreshes_failed"],
        ),
        Line(
            "revisions written",
            f"{figures['revisions']:,}",
            f"{n:,}",
            figures["revisions"] == n,
        ),
        Line(
            "SQL statements an execution",
            f"{statements:.4f}",
            f"below {STATEMENTS_LIMIT}",
            statements < STATEMENTS_LIMIT,
        ),
        Line(
            "longest list in the broker",
            f"{broker:,}",
            f"below {BROKER_LIMIT:,}",
            broker < BROKER_LIMIT,
        ),
        Line(
            "Redis commands over 5 ms, alone",
            "; ".join(figures["slow_commands_alone"][:3]) or "none",
            "none",
            not figures["slow_commands_alone"],
        ),
        Line(
            "the same among busy neighbours",
            _counted(figures["slow_commands"]),
            "none, where Redis has a core of its own",
            not figures["slow_commands"],
        ),
        Line(
            "pipeline against bare loop",
            f"{ratio:.1f} times",
            f"{TIMES_FASTER} times or more",
            ratio >= TIMES_FASTER,
        ),
    ]


def _counted(slow: list[str]) -> str:
    return f"{len(slow)}, the first {slow[0]}" if slow else "none"


def show(console: Console, figures: dict[str, Any], judged: list[Line]) -> None:
    measured = Table("measured", "figure", title=_title(figures), title_justify="left")
    for name, value in figures.items():
        measured.add_row(name.replace("_", " "), _text(value))
    console.print(measured)
    table = Table("", "what", "got", "must be")
    for line in judged:
        mark = "[green]holds[/]" if line.holds else "[red]FAILS[/]"
        table.add_row(mark, line.what, line.got, line.must)
    console.print(table)
    if (others := disturbance(figures)) > DISTURBED:
        console.print(f"[yellow]Other programs took {others:.0%} of this machine: repeat it.[/]")


def disturbance(figures: dict[str, Any]) -> float:
    """The share of the processor that went to others than the pipeline while it ran."""
    spent = figures["cpu_seconds"]
    return float(spent["all else"] / (sum(spent.values()) or 1))


def _title(figures: dict[str, Any]) -> str:
    return (
        f"{figures['executions']:,} executions of {figures['tasks']} tasks, "
        f"{figures['changed']:.0%} of them out of date"
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(one)}" for name, one in list(value.items())[:12]) or "none"
    if isinstance(value, list):
        return "\n".join(_text(one) for one in value[:8]) or "none"
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
