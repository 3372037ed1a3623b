"""Checks made of the findings of the overview, so that the doctor and the dashboard use the same words."""

from collections.abc import Callable, Iterator

from harbor_refresh.doctor.check import Level, Problem
from harbor_refresh.doctor.facts import Facts
from harbor_refresh.tasks.overview.findings import Level as Urgency


def overview(*codes: str) -> Callable[[Facts], Iterator[Problem]]:
    """Make a check of the findings with these codes."""

    def look(facts: Facts) -> Iterator[Problem]:
        for finding in facts.findings:
            if finding.code in codes:
                level = Level.ERROR if finding.level == Urgency.WRONG else Level.WARNING
                yield Problem(f"{finding.what} {finding.meaning}", finding.todo, level)

    return look
