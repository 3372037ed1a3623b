"""The output of a simulation: progress on standard error, and the verdict at the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.simulation.verdict import NAMES, Result
from harbor_refresh.executions.management.output import table
from harbor_refresh.executions.text import plural

MAX_DETAILS = 5
MEANING = {
    "K1": "every status and end time is what the tasks say",
    "K2": "queue and processing are empty",
    "K3": "the history has one row for each revision",
    "K4": "no final status was left without a newer task revision",
}


class Screen:
    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)

    def say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    @contextmanager
    def bar(self, text: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console) as progress:
            task = progress.add_task(f"{text:<10}", total=total)
            yield lambda done: progress.update(task, completed=done)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Callable[[str], None]]:
        columns = (TextColumn("{task.description}"), SpinnerColumn(), TimeElapsedColumn())
        with Progress(*columns, TextColumn("{task.fields[now]}"), console=self._console) as progress:
            task = progress.add_task(f"{text:<10}", total=None, now="")
            yield lambda now: progress.update(task, now=now)


def render(result: Result) -> Sequence[Table | str]:
    rows = [(name, MEANING[name], _count(len(result.broken(name)))) for name in NAMES]
    rows.append(("plan", "every end is what the plan predicts", _count(len(result.surprises))))
    details: list[str] = []
    if not result.failure:  # if the queue did not drain, violations only say that work is left
        details = [*map(str, result.violations[:MAX_DETAILS]), *result.surprises[:MAX_DETAILS]]
    return [_summary(result), table(("", "what must hold", "does it"), rows), *details]


def _count(broken: int) -> str:
    return f"NO, broken {plural(broken, 'time')}" if broken else "holds"


def _summary(result: Result) -> str:
    mix, tally = result.mix, result.tally
    return (
        f"{plural(mix.executions, 'execution')} of {plural(mix.tasks, 'task')}, ids "
        f"{result.first_id} to {result.last_id}, seed {mix.seed}: "
        f"{tally.applied:,} reports applied, {tally.unchanged:,} changed nothing, "
        f"{tally.refused:,} refused; {plural(tally.stops, 'stop')}. "
        f"Reported in {result.seconds_reporting:.1f} s, "
        f"drained in another {result.seconds_draining:.1f} s."
    )
