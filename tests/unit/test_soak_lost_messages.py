"""Which late jobs the soak takes for jobs whose message was lost with a worker."""

from typing import Any

import pytest

from tests.soak.evidence import Change, Evidence, JobRow, Run
from tests.soak.lost_messages import lost_with_workers


def job(name: str, published: float | None, status: str = "Pending", **values: Any) -> JobRow:
    return JobRow(name, int(name[1:]), 1, "plain", status, "", published=published, **values)


def ran(name: str, began: float) -> Run:
    return Run(name, int(name[1:]), "plain", 0, 101, 100, began, began + 0.1)


def changed(name: str, at: float) -> Change:
    return Change(1, at, False, int(name[1:]), 1, name, "Pending", 0, 1, 1, "")


#: A job that was sent at 100 s is late. The message of the next job was sent at 103 s, and it began at 110 s.
LATE, NEXT = job("j1", 100.0), job("j2", 103.0, "Success")
NEXT_BEGAN = ran("j2", 110.0)


@pytest.mark.parametrize(
    ("kills", "lost"),
    [
        ([97.9], None),  # before the message was sent
        ([98.1], 1),
        ([105.0], 1),
        ([114.9], 1),
        ([115.1], None),  # the next job had begun long before
        ([50.0, 105.0, 300.0], 1),
        ([], None),
    ],
)
def test_a_worker_was_killed_between_the_message_and_the_begin_of_the_next_job(
    kills: list[float], lost: int | None
) -> None:
    assert lost_with_workers(Evidence([NEXT_BEGAN], [], [LATE, NEXT], [], []), kills) == lost


@pytest.mark.parametrize(
    ("jobs", "kills", "lost"),
    [
        ([LATE, job("j3", 101.0)], [105.0], None),
        ([LATE, job("j3", 101.0)], [105.0, 106.0], 2),
        ([LATE, job("j3", 101.0)], [105.0, 105.0], 2),  # one cut, two workers
        ([LATE, job("j3", 150.0)], [101.0, 160.0], 2),
        ([LATE, job("j3", 150.0)], [101.0, 102.0], None),
    ],
)
def test_each_lost_message_has_a_moment_of_its_own(
    jobs: list[JobRow], kills: list[float], lost: int | None
) -> None:
    assert lost_with_workers(Evidence([NEXT_BEGAN], [], [*jobs, NEXT], [], []), kills) == lost


def test_of_two_late_jobs_the_one_with_less_time_gets_the_first_moment() -> None:
    """The second job may have lost its message at either moment, the first one at 105 s alone."""
    jobs = [job("j3", 104.0), LATE, NEXT]
    assert lost_with_workers(Evidence([NEXT_BEGAN], [], jobs, [], []), [105.0, 500.0]) == 2


@pytest.mark.parametrize(
    ("runs", "changes"),
    [([ran("j1", 200.0)], []), ([], [changed("j1", 200.0)])],
    ids=["its run wanted another try", "it was taken from a dead process"],
)
def test_the_message_of_another_try_counts(runs: list[Run], changes: list[Change]) -> None:
    found = Evidence([NEXT_BEGAN, *runs], changes, [LATE, NEXT], [], [])
    assert lost_with_workers(found, [105.0]) is None
    assert lost_with_workers(found, [201.0]) == 1


def test_a_job_behind_a_late_one_is_late_with_it() -> None:
    behind = [job("j3", None, before=1), job("j4", None, before=3)]
    assert lost_with_workers(Evidence([], [], [LATE, *behind], [], []), [105.0]) == 1


@pytest.mark.parametrize("before", [None, 2], ids=["it is the first", "the job before it has ended"])
def test_a_job_without_a_message_whose_turn_has_come_is_late_for_another_reason(before: int | None) -> None:
    found = Evidence([], [], [LATE, NEXT, job("j3", None, before=before)], [], [])
    assert lost_with_workers(found, [105.0, 106.0]) is None
