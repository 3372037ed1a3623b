"""The results of checks, as data for programs and as text for people."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from harbor_refresh.doctor.check import Level, Problem
from harbor_refresh.doctor.examination import Result
from harbor_refresh.executions.management.output import printable
from harbor_refresh.executions.text import plural

STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold yellow"}


def as_data(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "sound": not any(result.problems or result.not_made for result in results),
        "checks": [
            {
                "check": result.check.name,
                "title": result.check.title,
                "verdict": str(result.verdict),
                "needs": str(result.not_made) if result.not_made else None,
                "seconds": round(result.seconds, 3),
                "problems": [
                    {"level": str(one.level), "what": one.what, "todo": one.todo} for one in result.problems
                ],
            }
            for result in results
        ],
    }


def as_text(results: Sequence[Result]) -> list[Text | str]:
    """Lines are not broken, so that a command can be copied in one piece."""
    shown = [_problem(result, problem) for result in results for problem in result.problems]
    return [*shown, _summary(results)]


def _problem(result: Result, problem: Problem) -> Text:
    return Text.assemble(
        (f"{problem.level:<8} ", STYLES[problem.level]),
        (result.check.name, "bold"),
        f"  {printable(problem.what)}\n",
        ("         what to do: ", "dim"),
        f"{printable(problem.todo)}\n",
    )


def _summary(results: Sequence[Result]) -> str:
    sound = sum(result.verdict == "sound" for result in results)
    words = [f"{plural(len(results), 'check')}: {sound} sound"]
    for level in Level:
        if count := sum(one.level == level for result in results for one in result.problems):
            words.append(plural(count, str(level)))
    for need in dict.fromkeys(result.not_made for result in results if result.not_made):
        count = sum(result.not_made == need for result in results)
        words.append(f"{count} not made, because {need} does not answer")
    return ", ".join(words) + "."
