"""The invariants and the doctor on Harbor's tables."""

import pytest

from examples.simulation.invariants import violations
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import StatusChange
from tests.harbor.rows import NEVER, T1, T2, asked, execution, task

pytestmark = pytest.mark.usefixtures("attached", "redis")


def wrong() -> list[tuple[str, int | None]]:
    return [(one.name, one.execution_id) for one in violations()]


@pytest.mark.parametrize(
    ("status", "end", "words"),
    [
        ("Running", None, [("Success", T2)]),
        ("Success", T2, [("Success", T2), ("Error", T1)]),
        ("Error", T2, [("Success", T2), ("Running", NEVER)]),
        ("Success", None, [("Success", T2)]),
        ("Running", T2, [("Pending", None)]),
        ("Stopped", None, [("Error", T2), ("Stopped", None)]),
        (None, None, [("Running", NEVER)]),
    ],
)
def test_k1_sees_what_does_not_follow_from_the_words(
    status: str | None, end: object, words: list[tuple[str, object]]
) -> None:
    of = execution(status, end_time=end)
    for word, its_end in words:
        task(of, word, end_time=its_end)
    assert wrong() == [("K1", of)]
    refresh([of])
    assert wrong() == []


def test_k1_leaves_what_harbor_leaves() -> None:
    task(execution("Error"), "Succeed")
    task(execution("Success", start_time=T1.replace(year=2020)), "Pending")
    execution(None)
    assert wrong() == []


def test_k3_sees_a_history_that_was_not_written_in_its_order() -> None:
    of = execution()
    for revision in (7, 90, 8):
        StatusChange.objects.create(
            execution_id=of, revision=revision, from_status="Running", to_status="Error", at="2026-01-01T00:00Z"
        )
    assert wrong() == [("K3", of)]


def test_k4_sees_an_execution_that_is_reopened_more_often_than_its_tasks_explain() -> None:
    of = execution("Running")
    task(of, "Running", run_count=1)
    for revision in range(1, 4):
        StatusChange.objects.create(
            execution_id=of, revision=revision, from_status="Error", to_status="Running", at="2026-01-01T00:00Z"
        )
    assert wrong() == [("K4", of)]
    asked("UPDATE task SET run_count = 2")
    assert wrong() == []
