"""The results of checks, as data for programs and as text for people."""

from collections import Counter
from collections.abc import Sequence

from django.core.checks import CheckMessage
from rich.text import Text

from harbor_refresh.executions.management.output import Answer, printable
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks.checks.registry import Result, level_of, told, what_of

STYLES = {"error": "bold red", "warning": "bold yellow"}


def answer_of(results: Sequence[Result], level: str = "error") -> Answer:
    """Answer a command, which fails if there is a problem of this level. Lines are not broken, so that a command
    can be copied in one piece."""
    found = [problem for result in results for problem in result.problems]
    failing = [one for one in found if one.is_serious() or level == "warning"]
    shown: list[Text | str] = [*map(problem_text, found), _summary(results)]
    data = {
        "sound": not any(result.problems or result.not_made for result in results),
        "checks": [
            {
                "check": result.check.id,
                "title": result.check.title,
                "verdict": result.verdict,
                "needs": str(result.not_made) if result.not_made else None,
                "problems": [told(one) for one in result.problems],
            }
            for result in results
        ],
    }
    return Answer(data, shown, plural(len(failing), "problem") if failing else "")


def problem_text(problem: CheckMessage) -> Text:
    level = level_of(problem)
    return Text.assemble(
        (f"{level:<8} ", STYLES[level]),
        (str(problem.id), "bold"),
        f"  {printable(what_of(problem))}\n",
        ("         what to do: ", "dim"),
        f"{printable(str(problem.hint or '-'))}\n",
    )


def _summary(results: Sequence[Result]) -> str:
    sound = sum(result.verdict == "sound" for result in results)
    levels = Counter(level_of(one) for result in results for one in result.problems)
    missing = Counter(result.not_made for result in results if result.not_made)
    words = [f"{plural(len(results), 'check')}: {sound} sound"]
    words += [plural(levels[level], level) for level in STYLES if levels[level]]
    words += [f"{count} not made, because {need} does not answer" for need, count in missing.items()]
    return ", ".join(words) + "."
