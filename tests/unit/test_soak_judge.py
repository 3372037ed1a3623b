"""The judge of the soak: each of its checks fails where it must, and holds where what it sees is allowed."""

from dataclasses import replace
from typing import Any

import pytest

from tests.soak.evidence import Ask, Change, Evidence, Freeze, JobRow, Process, Run, lasting, runs_of
from tests.soak.judge import SLACK, judge
from tests.soak.plan import WEIGHTS, plan

SILENT = 4.0
WORKER, OTHER_WORKER = 100, 200


def run(began: float, ended: float | None = None, *, outcome: str = "returned", **values: Any) -> Run:
    known: dict[str, Any] = {"job": "j", "task": 1, "kind": "plain", "revision": 0, "pid": 101, "worker": WORKER}
    return Run(**{**known, **values}, began=began, ended=ended, outcome=outcome if ended else "")


def changes(*steps: tuple[float, str, int], ours: tuple[str, ...] = ("Pending",), **values: Any) -> list[Change]:
    """The life of a task, as (time, status, revision); the traffic asks for the statuses in `ours`."""
    codes = {"Pending": 0, "Scheduled": 1, "Running": 2}
    known: dict[str, Any] = {"task": 1, "execution": 1, "job": "j", "runs": 0, "message": ""}
    known |= values
    return [
        Change(round(at), at, status in ours, **known, status=status, code=codes.get(status, 3), revision=revision)
        for at, status, revision in steps
    ]


def row(status: str = "Success", message: str = "", **values: Any) -> JobRow:
    known: dict[str, Any] = {"job": "j", "task": 1, "execution": 1, "kind": "plain"}
    return JobRow(**{**known, **values}, status=status, message=message)


def evidence(
    runs: list[Run],
    life: list[Change],
    jobs: list[JobRow] | None = None,
    freezes: list[Freeze] | None = None,
    asks: list[Ask] | None = None,
) -> Evidence:
    return Evidence(runs, life, [row()] if jobs is None else jobs, freezes or [], asks or [])


LIFE = changes((0, "Pending", 0), (1, "Running", 0), (2, "Success", 0))
GOOD = run(1, 2)
TRIED_AGAIN = changes((0, "Pending", 0), (2, "Error", 0), (10, "Pending", 1), (12, "Error", 1))
ERROR = row("Error", "ValueError: it is broken", kind="fails")
STOPPED_AND_OPENED = changes(
    (0, "Pending", 0), (2, "Stopped", 0), (3, "Scheduled", 1), (5, "Success", 1), ours=("Pending", "Stopped")
)
TWO_AT_ONCE = [run(1, 3), run(2, 4, pid=201, worker=OTHER_WORKER)]
EXHAUSTED = "it has begun 5 times, which is as often as it may: see max_attempts"


def with_pages(*pages: int) -> list[Run]:
    return [run(at, at + 0.5, kind="pages", revision=at, said={"page": page}) for at, page in enumerate(pages)]


def limited(began: float, ended: float, task: int, key: str = "k", **values: Any) -> Run:
    return run(began, ended, kind="limited", job=f"l{task}", task=task, said={"key": key}, **values)


def failing(began: float, **values: Any) -> Run:
    return run(began, began + 0.05, outcome="ValueError", kind="fails", **values)


def attempts(count: int, **values: Any) -> list[Run]:
    return [run(at, at + 0.5, revision=at, outcome="Retry", **values) for at in range(count)]


#: What is wrong, and the name of the violation.
BAD: dict[str, tuple[Evidence, str]] = {
    "a run begins after success": (evidence([GOOD, run(2 + SLACK + 0.1, 4)], LIFE), "ran after its end"),
    "a run begins after its task was deleted": (
        evidence([GOOD, run(9, 10)], [*LIFE, *changes((5, "Deleted", 0), ours=("Deleted",))], jobs=[]),
        "ran after its end",
    ),
    "a worker opens what was stopped": (
        evidence([run(1, 2, outcome="Retry"), run(4, 5, revision=1)], STOPPED_AND_OPENED),
        "reopened",
    ),
    "a job waits for ever": (evidence([], changes((0, "Pending", 0)), [row("Pending")]), "did not end"),
    "a stop was rolled back and stops it all the same": (
        evidence([], [], [row("Stopped")], asks=[Ask("stop", 1, "rolled back", 1)]),
        "stopped by nothing",
    ),
    "an error that its code does not raise": (
        evidence([GOOD], LIFE, [row("Error", "TypeError: takes 2 arguments")]),
        "error without a reason",
    ),
    "max_attempts after one run of five": (evidence([GOOD], LIFE, [row("Error", EXHAUSTED)]), "gave up too early"),
    "success of a job that never ran": (evidence([], LIFE), "success without a run"),
    "six runs of five": (evidence(attempts(6), [], [row("Error", EXHAUSTED)]), "too many runs"),
    "two runs at once": (evidence(TWO_AT_ONCE, []), "two at once"),
    "its worker stood still for a moment only": (
        evidence([run(1, 9), run(8, 10, pid=201)], [], freezes=[Freeze(WORKER, 2, 3)]),
        "two at once",
    ),
    "a chain hands on something else": (
        evidence([run(1, 2, kind="takes", said={"got": None, "wanted": {"value": "1"}})], []),
        "wrong argument",
    ),
    "a job of a chain runs before its turn": (
        evidence([GOOD, run(1.9, 3, job="k", task=2)], LIFE, [row(), row(job="k", task=2, needs=(1,))]),
        "ran before its turn",
    ),
    "more runs of a key than its limit": (
        evidence([limited(1, 9, 1), limited(2, 9, 2), limited(3, 9, 3)], [], []),
        "more than the limit",
    ),
    "a try with other arguments, then one with those of before": (
        evidence(with_pages(1, 2, 1), []),
        "forgotten arguments",
    ),
}

ALLOWED: dict[str, Evidence] = {
    "as many runs of a key as its limit lets, beside one of another key": evidence(
        [limited(1, 9, 1), limited(2, 9, 2), limited(3, 9, 3, "another"), limited(9.1, 10, 4)], [], []
    ),
    "a run of a key beside one that was stopped and has not noticed": evidence(
        [limited(1, 9, 1), limited(2, 9, 2), limited(3, 9, 3)], changes((2.5, "Stopped", 0), task=1), []
    ),
    "a run whose process stood still while its task ended": evidence(
        [GOOD, run(8, 9)], LIFE, freezes=[Freeze(WORKER, 1.5, 7.5)]
    ),
    "a job that is tried again by hand": evidence([failing(1), failing(11, revision=1)], TRIED_AGAIN, [ERROR]),
    "a stop whose outcome is not known": evidence([], [], [row("Stopped")], asks=[Ask("stop", 1, "raised", 1)]),
    "six runs of five, and PostgreSQL crashed as one began": replace(
        evidence(attempts(6), [], [row("Error", EXHAUSTED)]), crashes=[5.6]
    ),
    "two runs at once, and the worker of the first stood still for longer than the ttl": evidence(
        [run(1, 9), run(8, 10, pid=201)], [], freezes=[Freeze(WORKER, 2, 7)]
    ),
    "two runs at once, and PostgreSQL crashed as the first began": replace(
        evidence(TWO_AT_ONCE, []), crashes=[1.2]
    ),
    "a job of a chain that waits for its turn": evidence(
        [GOOD, run(2.1, 3, job="k", task=2)], LIFE, [row(), row(job="k", task=2, needs=(1,))]
    ),
    "pages one after the other, and one of them twice": evidence(with_pages(1, 2, 2, 3), []),
}


@pytest.mark.parametrize("case", BAD)
def test_each_violation_is_found_once_and_by_its_name(case: str) -> None:
    given, name = BAD[case]
    assert [one.name for one in judge(given, silent_seconds=SILENT)] == [name]


@pytest.mark.parametrize("case", ALLOWED)
def test_allowed_evidence_is_no_violation(case: str) -> None:
    assert judge(ALLOWED[case], silent_seconds=SILENT) == []


def test_the_lines_of_jobs_become_runs_whatever_their_order_and_a_killed_one_has_no_end() -> None:
    who = {"job": "j", "task": 1, "kind": "pages", "revision": 0, "pid": 101, "worker": WORKER}
    killed = {**who, "job": "k", "pid": 102}
    lines = [
        {"what": "end", **who, "at": 12.0, "clock": 2.0, "outcome": "Retry"},
        {"what": "begin", **who, "at": 11.0, "clock": 1.0, "page": 1},
        {"what": "begin", **killed, "at": 13.0, "clock": 3.0},
        {"what": "begin", **who, "at": 14.0, "clock": 4.0, "page": 2},
        {"what": "end", **who, "at": 15.0, "clock": 5.0, "outcome": "returned"},
    ]
    # the number of the killed one was that of another process before, and is that of another one since
    alive = {Process(101, 1.0): 20.0, Process(102, 1.0): 9.0, Process(102, 12.0): 13.5, Process(102, 14.0): 99.0}
    first = run(11, 12, kind="pages", outcome="Retry", alive_until=20.0, said={"page": 1})
    assert runs_of(lines, alive) == [
        first,
        run(13, None, job="k", kind="pages", pid=102, alive_until=13.5),
        replace(first, began=14.0, ended=15.0, outcome="returned", said={"page": 2}),
    ]


def test_a_problem_counts_only_if_every_look_shows_it() -> None:
    looks = [["3 jobs wait", "K5: a key is left"], ["4 jobs wait"], ["2 jobs wait", "K5: a key is left"]]
    assert lasting(looks) == ["2 jobs wait"]
    assert lasting([*looks, []]) == []


def test_a_seed_is_a_plan_and_leaving_a_fault_out_changes_no_other() -> None:
    whole = plan(1, 600)
    assert plan(1, 600) == whole != plan(2, 600)
    assert {fault.name for fault in whole} == set(WEIGHTS)
    without = plan(1, 600, ["worker_kill"])
    left = [fault for fault in whole if fault.name != "worker_kill"]
    assert [(fault.at, fault.name, fault.random.random()) for fault in without] == [
        (fault.at, fault.name, fault.random.random()) for fault in left
    ]
