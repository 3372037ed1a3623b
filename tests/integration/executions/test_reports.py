"""apply_reports against the reference model: whole task rows, whatever the order and however a batch is
split."""

import itertools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, ReportOutcome, report
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news import signals
from harbor_refresh.executions.news.after_commit import Member
from harbor_refresh.executions.status import MAX_ID, MAX_REVISION
from tests.created import create_many
from tests.integration.concurrency import at_once
from tests.integration.database_state import rows
from tests.integration.executions.reference_model import CODE, ReferenceTask, changes, reported

pytestmark = pytest.mark.usefixtures("database")

Said = tuple[str, int] | tuple[str, int, str | None]


def new_tasks(count: int) -> list[int]:
    execution = create(NewExecution("TEST", tasks=[NewTask()] * count))
    return sorted(execution.tasks.values_list("pk", flat=True))


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def report_and_compare(reports: Sequence[Report], splits: Sequence[int] = ()) -> list[ReportOutcome]:
    """Report, split at these places, in one transaction; every task must be what the model says."""
    expected = rows(Task)
    outcomes = []
    with transaction.atomic():
        now = database_now()
        edges = [0, *sorted(splits), len(reports)]
        for start, end in itertools.pairwise(edges):
            applied = 0
            for one in reports[start:end]:
                row = expected[one.task_id]
                before = ReferenceTask.from_row(row)
                applied += changes(before, one.status, one.revision)
                after = reported(before, one.status, one.revision, one.message, now)
                expected[one.task_id] = row | vars(after)
            outcome = report(reports[start:end])
            assert (outcome.applied, outcome.unchanged) == (applied, end - start - applied)
            assert outcome.refused == []
            outcomes.append(outcome)
    assert rows(Task) == expected
    return outcomes


CASES: dict[str, list[Said]] = {
    "a life from Pending to Success": [("Scheduled", 0), ("Running", 0), ("Success", 0)],
    "a repeated report": [("Running", 0), ("Running", 0)],
    "a late report": [("Success", 0), ("Running", 0), ("Scheduled", 0), ("Pending", 0)],
    "reports out of order": [("Running", 0), ("Scheduled", 0), ("Error", 0), ("Running", 0)],
    "the first final status of a revision stands": [
        ("Error", 0),
        ("Success", 0),
        ("Stopped", 0),
    ],
    "a re-run opens the task again": [("Error", 0), ("Pending", 1), ("Running", 1)],
    "a report of the run before": [("Running", 2), ("Success", 1), ("Running", 2)],
    "a revision that skips some is one re-run": [("Running", 5), ("Success", 9)],
    "the highest revision there is": [("Success", MAX_REVISION), ("Running", MAX_REVISION)],
    "a report without a message keeps the one before": [
        ("Running", 0, "half"),
        ("Error", 0, None),
    ],
    "a Success keeps no message of what it was doing": [
        ("Running", 0, "half"),
        ("Success", 0, None),
    ],
    "a message of a report that changes nothing is not kept": [
        ("Success", 0, "good"),
        ("Running", 0, "late"),
    ],
    "an empty message clears the one before": [("Running", 0, "half"), ("Success", 0, "")],
    "a re-run forgets the message of the run before": [
        ("Error", 0, "broken"),
        ("Running", 1, None),
    ],
    "a message of a re-run that says nothing more stays": [
        ("Error", 0, "broken"),
        ("Running", 1, "again"),
        ("Error", 1, None),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_reported_in_one_batch_and_each_in_its_own_transaction(name: str) -> None:
    """The times of a row are those of the reports that changed it."""
    together, alone = new_tasks(2)
    report_and_compare([Report(together, *one) for one in CASES[name]])
    for one in CASES[name]:
        report_and_compare([Report(alone, *one)])


texts = st.none() | st.sampled_from(["", "a", "b"])
one_report = st.tuples(st.integers(0, 2), st.sampled_from(sorted(CODE)), st.integers(0, 3), texts)


@given(
    said=st.lists(one_report, min_size=1, max_size=14),
    before=st.lists(one_report, max_size=3),
    data=st.data(),
)
@settings(max_examples=150, derandomize=True, database=None)
def test_any_batch_split_in_any_way_gives_the_result_of_single_reports_and_of_the_model(
    said: list[Any], before: list[Any], data: st.DataObject
) -> None:
    splits = data.draw(st.lists(st.integers(0, len(said)), max_size=4))
    one_by_one, split = new_tasks(3), new_tasks(3)
    for tasks in (one_by_one, split):
        report([Report(tasks[index], *rest) for index, *rest in before])
    with transaction.atomic():
        report_and_compare([Report(one_by_one[index], *rest) for index, *rest in said], range(1, len(said)))
        report_and_compare([Report(split[index], *rest) for index, *rest in said], splits)
    own = ("pk", "id", "execution_id", "creation_time", "update_time", "start_time", "end_time")
    table = rows(Task)
    for left, right in zip(one_by_one, split, strict=True):
        a, b = table[left], table[right]
        assert {k: v for k, v in a.items() if k not in own} == {k: v for k, v in b.items() if k not in own}
    Execution.objects.all().delete()


# what cannot be used


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown status": ({"status": "Succeed"}, "unknown status 'Succeed'; takes Pending"),
    "negative revision": ({"revision": -1}, "malformed revision -1; takes a whole number from 0"),
    "true for a revision": ({"revision": True}, "malformed revision True"),
    "a revision too large": ({"revision": MAX_REVISION + 1}, "malformed revision 2305843004918726657"),
    "unknown task": ({"task_id": MAX_ID}, f"there is no task {MAX_ID}"),
    "task 0": ({"task_id": 0}, "malformed task id 0"),
    "a task beyond bigint": ({"task_id": MAX_ID + 1}, f"malformed task id {MAX_ID + 1}"),
    "NUL in a message": ({"message": "a\x00b"}, "malformed message 'a\\x00b'; takes text"),
    "half a character in a message": ({"message": "\ud800"}, "malformed message '\\ud800'"),
    "runs below none": (
        {"earlier_runs": -1},
        "malformed earlier runs -1; takes a whole number from 0 to 1,000,000",
    ),
    "runs beyond all measure": ({"earlier_runs": 1_000_001}, "malformed earlier runs 1000001"),
}


def test_a_report_may_count_runs_whose_own_reports_were_overtaken() -> None:
    one_by_one, together = new_tasks(2)
    given = [
        ("Scheduled", 3, 3, 3),
        ("Scheduled", 2, 9, 3),  # too late: it changes nothing
        ("Running", 3, 1, 3),  # fewer than are known
        ("Scheduled", 4, 0, 4),  # a runner that does not count
    ]
    for status, revision, earlier_runs, run_count in given:
        report([Report(one_by_one, status, revision, earlier_runs=earlier_runs)])
        assert Task.objects.get(pk=one_by_one).run_count == run_count
    report(Report(together, status, revision, earlier_runs=runs) for status, revision, runs, _ in given)
    assert Task.objects.get(pk=together).run_count == 4


def test_unusable_reports_are_refused_by_name_in_their_order_and_the_rest_is_applied() -> None:
    first, second, third = new_tasks(3)
    usual = {"task_id": second, "status": "Running", "revision": 0}
    bad = [Report(**(usual | changed)) for changed, _ in REFUSED.values()]
    told: list[Any] = []

    def listen(refusals: Any, **_: Any) -> None:
        told.extend(refusals)

    signals.refused.connect(listen)
    outcome = report([Report(first, "Running"), *bad, Report(first, "Running"), Report(third, "Error", 1, "x")])
    assert (outcome.applied, outcome.unchanged) == (2, 1)
    assert [(one.position, one.report) for one in outcome.refused] == list(enumerate(bad, 1))
    for refusal, (_, reason) in zip(outcome.refused, REFUSED.values(), strict=True):
        assert refusal.reason.startswith(reason)
    assert told == outcome.refused
    status = dict(Task.objects.order_by("pk").values_list("pk", "status"))
    assert status == {first: "Running", second: "Pending", third: "Error"}


def test_an_empty_batch_does_not_touch_the_database(changed: list[Member]) -> None:
    assert report([]) == ReportOutcome()
    assert changed == []


def test_ten_thousand_tasks_of_one_execution_end_in_one_batch(changed: list[Member]) -> None:
    tasks = new_tasks(10_000)
    outcome = report(Report(task, "Success") for task in tasks)
    assert (outcome.applied, len(outcome.execution_ids)) == (10_000, 1)
    assert Task.objects.filter(status="Success", end_time__isnull=False).count() == 10_000
    assert changed == [(outcome.execution_ids[0], "TEST")]


# at the same moment


def test_overlapping_batches_in_opposite_order_never_deadlock_and_none_is_lost() -> None:
    executions = create_many(NewExecution("TEST", tasks=[NewTask()] * 20) for _ in range(5))
    tasks = sorted(Task.objects.values_list("pk", flat=True))
    assert len(executions) == 5
    rounds = 25

    def runner(number: int) -> None:
        mine = tasks if number % 2 else tasks[::-1]
        for turn in range(rounds):
            revision = turn * 4 + number
            report([Report(task, "Running", revision) for task in mine])

    at_once(*(lambda number=number: runner(number) for number in range(1, 5)))
    states = set(Task.objects.values_list("status", "status_revision"))
    assert states == {("Running", (rounds - 1) * 4 + 4)}
