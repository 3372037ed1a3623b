"""The conditions that must hold for jobs, as functions over the evidence.

examples/simulation/invariants.py checks K1 to K4, and `seed` checks K5.

| violation              | a job                                                                           |
| ---------------------- | ------------------------------------------------------------------------------- |
| ran after its end      | began a run although its task had its final status, or was deleted              |
| reopened               | had a final status, and a worker changed it                                     |
| did not end            | has no final status when the quiet time is over, although its turn has come     |
| stopped by nothing     | is Stopped, no call stopped its execution, and what it needs has succeeded      |
| error without a reason | is Error, and its code never raises this error                                  |
| gave up too early      | is Error for max_attempts, and ran much less often                              |
| success without a run  | is Success, and none of its runs came to its end                                |
| too many runs          | began more often than max_attempts since it was started or tried again          |
| two at once            | ran twice at the same time, and no frozen worker or crash explains it           |
| more than the limit    | ran beside as many others of its key as may run at once                         |
| wrong argument         | got an argument that the jobs that it needs did not return                      |
| ran before its turn    | began a run, and a job that it needs had not succeeded                          |
| forgotten arguments    | ran with the arguments of an earlier try                                        |

All times are of one machine. A run may begin while its task is being ended: SLACK seconds are allowed, plus the
time for which the process of the run was frozen in between.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tests.soak.evidence import Change, Evidence, Freeze, JobRow, Run
from tests.soak.jobs import ERRORS, LIMIT, MAX_ATTEMPTS

FINAL = ("Stopped", "Error", "Success")
SLACK = 1.0
#: A shorter overlap of two runs does not count, because the lines of both are written a moment late.
MOMENT = 0.05
#: So long a begin may not be on disk (docs/explanation/guarantees.md).
FORGOTTEN_SECONDS = 1.0
#: So many runs may have left no line, because the process died before it could write.
UNWRITTEN = 2


@dataclass(frozen=True)
class Violation:
    name: str
    job: str
    what: str

    def __str__(self) -> str:
        return f"{self.name}: job {self.job} {self.what}"


def judge(evidence: Evidence, *, silent_seconds: float) -> list[Violation]:
    late = list(ran_after_the_end(evidence))
    found = [
        *late,
        *reopened(evidence),
        *badly_ended(evidence),
        *two_at_once(evidence, silent_seconds),
        *wrong_arguments(evidence),
        *ran_before_its_turn(evidence),
        *more_than_the_limit(evidence, silent_seconds),
    ]
    # these two checks add nothing about a job that ran after its end
    ran_late = {one.job for one in late}
    others = (*too_many_runs(evidence), *forgotten_arguments(evidence))
    return [*found, *(one for one in others if one.job not in ran_late)]


def ran_after_the_end(evidence: Evidence) -> Iterator[Violation]:
    changes = evidence.changes_by_task()
    for run in evidence.runs:
        last = _last_before(changes.get(run.task, []), run.began)
        if last is None or not last.is_final:
            continue
        late = run.began - last.at - _stood_still(evidence.freezes, run.worker, last.at, run.began)
        if late > SLACK:
            end = f"its task was {last.status} (revision {last.revision})"
            yield Violation("ran after its end", run.job, f"({run.kind}) began a run {late:.1f} s after {end}")


def reopened(evidence: Evidence) -> Iterator[Violation]:
    for changes in evidence.changes_by_task().values():
        for before, after in pairwise(changes):
            is_another = (before.status, before.revision) != (after.status, after.revision)
            if before.is_final and not after.is_ours and is_another:
                end = f"was {before.status} (revision {before.revision})"
                yield Violation("reopened", after.job, f"{end} and became {after.status} ({after.revision})")


def badly_ended(evidence: Evidence) -> Iterator[Violation]:
    """At most one violation for each job."""
    rows = {row.task: row for row in evidence.jobs}
    runs = evidence.runs_by_job()
    may_stop = {one.execution for one in evidence.asks if one.what != "retry" and one.outcome != "rolled back"}
    lives = _lives(evidence)
    for row in evidence.jobs:
        needed = [rows[one].status for one in row.needs if one in rows]
        its_runs = [run for run in runs.get(row.job, []) if run.revision >= lives.get(row.task, [0])[-1]]
        match row.status:
            case "Success":
                found = _of_success(row, runs.get(row.job, []))
            case "Stopped":
                is_broken = any(one != "Success" for one in needed)
                is_explained = is_broken or row.execution in may_stop
                found = None if is_explained else ("stopped by nothing", f'is Stopped: "{row.message}"')
            case "Error":
                found = _of_error(row, its_runs)
            case _ if any(one not in FINAL for one in needed):
                found = None  # it waits for its turn; the violation belongs to the job that it needs
            case _:
                found = "did not end", f"is {row.status} after {len(its_runs)} runs"
        if found:
            yield Violation(found[0], row.job, f"({row.kind}) {found[1]}")


def _of_success(row: JobRow, runs: list[Run]) -> tuple[str, str] | None:
    if any(run.outcome == "returned" for run in runs):
        return None
    return "success without a run", f"is Success, and its runs ended as {[run.outcome for run in runs]}"


def _of_error(row: JobRow, runs: list[Run]) -> tuple[str, str] | None:
    if row.message.startswith("it has begun "):
        most = MAX_ATTEMPTS[row.kind]
        is_early = len(runs) + UNWRITTEN < most
        return ("gave up too early", f"began {len(runs)} times of {most}") if is_early else None
    if row.message.startswith(ERRORS.get(row.kind, ())):
        return None
    return "error without a reason", f'is Error: "{row.message}"'


def too_many_runs(evidence: Evidence) -> Iterator[Violation]:
    lives = _lives(evidence)
    for job, runs in evidence.runs_by_job().items():
        most = MAX_ATTEMPTS[runs[0].kind]
        for first, after in pairwise([*lives.get(runs[0].task, [0]), sys.maxsize]):
            count = sum(first <= run.revision < after and not _was_forgotten(evidence, run) for run in runs)
            if count > most:
                yield Violation("too many runs", job, f"({runs[0].kind}) ran {count} times of {most}")


def _was_forgotten(evidence: Evidence, run: Run) -> bool:
    """PostgreSQL crashed before the begin of this run was on disk."""
    return any(run.began <= at <= run.began + FORGOTTEN_SECONDS for at in evidence.crashes)


def two_at_once(evidence: Evidence, silent_seconds: float) -> Iterator[Violation]:
    """A run whose worker was frozen for longer than a node may be silent explains the other one."""
    for job, runs in evidence.runs_by_job().items():
        for number, second in enumerate(runs):
            for first in runs[:number]:
                together = min(first.until, second.until) - second.began
                is_dead = _was_taken_for_dead(evidence.freezes, first, second.began, silent_seconds)
                if first.until - second.began <= MOMENT or is_dead or _was_forgotten(evidence, first):
                    continue
                later = f"{second.began - first.began:.1f} s after its beginning, in {second.pid}"
                what = f"in process {first.pid} and, {later}: together for {max(together, 0):.1f} s"
                yield Violation("two at once", job, f"({first.kind}) ran {what}")


def more_than_the_limit(evidence: Evidence, silent_seconds: float) -> Iterator[Violation]:
    """A run has its place until its task has ended, or its worker was taken for dead, also if its code goes on."""
    changes = evidence.changes_by_task()

    def has_a_place(run: Run, moment: float) -> bool:
        last = _last_before(changes.get(run.task, []), moment)
        has_ended = last is not None and last.is_final
        return not (has_ended or _was_taken_for_dead(evidence.freezes, run, moment, silent_seconds))

    limited = sorted((run for run in evidence.runs if run.kind == "limited"), key=lambda run: run.began)
    for number, run in enumerate(limited):
        moment = run.began + MOMENT
        beside = {
            one.job
            for one in limited[:number]
            if one.said == run.said and one.until > moment and has_a_place(one, run.began)
        } - {run.job}
        if len(beside) >= LIMIT:
            yield Violation(
                "more than the limit", run.job, f"(limited) ran beside {len(beside)} others of its key"
            )


def wrong_arguments(evidence: Evidence) -> Iterator[Violation]:
    for run in evidence.runs:
        if "wanted" in run.said and run.said.get("got") != run.said["wanted"]:
            what = f"({run.kind}) got {run.said.get('got')!r} and not {run.said['wanted']!r}"
            yield Violation("wrong argument", run.job, what)


def ran_before_its_turn(evidence: Evidence) -> Iterator[Violation]:
    changes = evidence.changes_by_task()
    needs = {row.job: row.needs for row in evidence.jobs}
    for run in evidence.runs:
        for task in needs.get(run.job, ()):
            its_changes = changes.get(task, [])
            if not any(one.status == "Success" and one.at <= run.began for one in its_changes):
                yield Violation(
                    "ran before its turn", run.job, f"({run.kind}) began a run before task {task} was Success"
                )


def forgotten_arguments(evidence: Evidence) -> Iterator[Violation]:
    """Find runs that go back to an earlier page. A run with page 2 proves that a try with page 2 was asked for, so
    no later run may have page 1. A try by hand begins at the last page or at the first."""
    lives = _lives(evidence)
    for job, runs in evidence.runs_by_job().items():
        beginnings = lives.get(runs[0].task, [0])
        furthest: dict[int, Run] = {}
        for run in runs:
            if "page" not in run.said:
                continue
            life = sum(first <= run.revision for first in beginnings)
            before = furthest.setdefault(life, run)
            if run.said["page"] >= before.said["page"]:
                furthest[life] = run
            else:
                what = f"({run.kind}) ran with page {run.said['page']} after page {before.said['page']}"
                yield Violation("forgotten arguments", job, what)
                break


def _lives(evidence: Evidence) -> dict[int, list[int]]:
    """The revisions in which each task was started or tried again by hand."""
    lives: dict[int, list[int]] = {}
    for task, changes in evidence.changes_by_task().items():
        lives[task] = [0]
        for before, after in pairwise(changes):
            if before.is_final and after.is_ours and not after.is_final:
                lives[task].append(after.revision)
    return lives


def _last_before(changes: list[Change], moment: float) -> Change | None:
    found = None
    for change in changes:
        if change.at <= moment:
            found = change
    return found


def _stood_still(freezes: list[Freeze], worker: int, since: float, until: float) -> float:
    return sum(max(0.0, min(one.until, until) - max(one.since, since)) for one in freezes if one.worker == worker)


def _was_taken_for_dead(freezes: list[Freeze], run: Run, moment: float, silent_seconds: float) -> bool:
    """Whether the run's worker was frozen for about as long as a node may be silent, after the run had begun and
    before the moment."""
    its_own = (one for one in freezes if one.worker == run.worker and one.until - one.since > silent_seconds / 2)
    return any(run.began < one.until and one.since < moment for one in its_own)
