"""The executions whose status or end is not what their tasks say, found in pages by id."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from harbor_refresh.executions import pacing
from harbor_refresh.executions.database import Statements

run = Statements(__package__)

PAGE = 5_000
EXAMPLES = 20

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Wrong:
    """A wrong execution. Its ends are text, as PostgreSQL writes them; None: no end."""

    execution_id: int
    vendor_type: str
    stored: str | None
    stored_end: str | None
    true: str
    true_end: str | None


@dataclass
class Findings:
    """What a look has found. `unfinished`: executions that have not ended, so they will be refreshed again.
    `given_up`: Harbor's sweep has ended them although tasks wait, and would do so again, so they are left."""

    looked_at: int = 0
    unfinished: int = 0
    wrong: int = 0
    given_up: int = 0
    examples: list[Wrong] = field(default_factory=list)

    def add(self, found: list[Wrong]) -> None:
        self.wrong += len(found)
        self.examples += found[: EXAMPLES - len(self.examples)]


def pages(findings: Findings, size: int = PAGE) -> Iterator[list[Wrong]]:
    """Yield the wrong executions of each page, and count what was looked at. A statement reads one page and holds
    no lock. What is written meanwhile behind the page is not seen; it has marks of its own."""
    after, dangling = 0, timedelta(hours=pacing.DANGLING_HOURS)
    while True:
        (last, _, looked_at, unfinished, *_), *rows = run("find_wrong", after=after, page=size, dangling=dangling)
        if last is None:
            return
        findings.looked_at += int(looked_at)
        findings.unfinished += int(unfinished)
        wrong = [Wrong(*row) for *row, is_given_up in rows if not is_given_up]
        findings.given_up += len(rows) - len(wrong)
        yield wrong
        after = last


def look(progress: Progress = lambda looked_at: None) -> Findings:
    """Look at every execution; write nothing."""
    findings = Findings()
    for page in pages(findings):
        findings.add(page)
        progress(findings.looked_at)
    return findings
