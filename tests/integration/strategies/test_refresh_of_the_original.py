"""The refresh of the original, one execution at a time: its statements, and what its faults cost."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.designs import strategy
from examples.simulation.invariants import violations
from harbor_refresh.executions.lifecycle import crash_points
from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, StatusChange, Task
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.strategies.original_refresh import OVERTAKEN, refresh_one, roll_up
from tests.integration.concurrency import Pause, in_background
from tests.integration.strategies.marked_executions import marked, refuse

pytestmark = pytest.mark.usefixtures("database", "redis")

AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", Status.values)
def test_one_status_alone_rolls_up_as_the_view_does(name: str) -> None:
    assert roll_up({name: 2}) == ("Running" if not is_final(name) else name)
    assert roll_up({name: 1, "Running": 1}) == "Running"
    assert roll_up({"Succeed": 3}) == "Success"


def test_the_original_writes_a_revision_and_its_history_whether_anything_differs_or_not() -> None:
    (pk,) = marked(1)
    for revision in (1, 2, 3):
        assert refresh_one(pk).changed == 1
        assert Execution.objects.get(pk=pk).revision == revision
    changes = StatusChange.objects.filter(execution_id=pk).order_by("revision")
    assert [(one.revision, one.from_status, one.to_status) for one in changes] == [
        (1, "Running", "Success"),
        (2, "Success", "Success"),
        (3, "Success", "Success"),
    ]


def test_the_original_takes_four_statements_a_final_execution_and_no_transaction() -> None:
    (pk,) = marked(1)
    with CaptureQueriesContext(connection) as final:
        refresh_one(pk)
    words = [query["sql"].rpartition("\n--")[2].partition("\n")[2].split()[0] for query in final]
    assert words == ["SELECT", "SELECT", "WITH", "UPDATE"]
    report([Report(task.pk, "Running", 2) for task in Task.objects.filter(execution_id=pk)])
    with CaptureQueriesContext(connection) as running:  # its end stays empty
        refresh_one(pk)
    assert len(running) == 3


def test_of_two_who_read_the_same_revision_the_later_to_write_reads_again() -> None:
    """The one that waits has counted one Error less than is true by now."""
    execution = create(NewExecution("REPLICATION", tasks=[NewTask(), NewTask()]))
    first, second = execution.tasks.order_by("pk")
    report([Report(first.pk, "Success", 1)])
    with Pause("counted") as pause, in_background(lambda: refresh_one(execution.pk)) as outcome:
        pause.wait_until_reached()
        report([Report(second.pk, "Error", 1)])
        refresh_one(execution.pk)
        pause.go_on.set()
        assert outcome().succeeded == 1
    execution.refresh_from_db()
    assert execution.status == "Error"
    assert [one for one in violations() if one.name != "K2"] == []


class Killed(BaseException):
    """Stands for a process that ends here."""


def ended_long_ago() -> Execution:
    """An execution whose true end is not the moment of its refresh."""
    (pk,) = marked(1)
    Task.objects.filter(execution_id=pk).update(end_time=AGES_AGO)
    return Execution.objects.get(pk=pk)


def killed_at_its_write(pk: int) -> None:
    def die(point: str, _: Sequence[int]) -> None:
        if point == "written":
            raise Killed

    crash_points.handlers.append(die)
    with pytest.raises(Killed):
        refresh_one(pk)
    crash_points.handlers.remove(die)


def test_one_that_dies_before_its_last_statement_leaves_the_end_that_another_has_corrected() -> None:
    execution = ended_long_ago()
    refresh_one(execution.pk)
    killed_at_its_write(execution.pk)
    execution.refresh_from_db()
    assert (execution.revision, execution.end_time) == (2, AGES_AGO)


def test_one_that_dies_before_its_last_statement_leaves_it_to_another_that_has_written_before() -> None:
    execution = ended_long_ago()
    with Pause("written") as pause, in_background(lambda: refresh_one(execution.pk)) as outcome:
        pause.wait_until_reached()
        killed_at_its_write(execution.pk)
        pause.go_on.set()
        assert outcome().succeeded == 1
    execution.refresh_from_db()
    assert (execution.revision, execution.end_time) == (2, AGES_AGO)


def test_one_that_is_overtaken_five_times_fails_with_a_reason() -> None:
    (pk,) = marked(1)
    inside = threading.local()

    def overtake(point: str, execution_ids: Sequence[int]) -> None:
        if point == "counted" and not getattr(inside, "it", False):
            inside.it = True
            refresh_one(pk)
            inside.it = False

    crash_points.handlers.append(overtake)
    assert refresh_one(pk).failed == {pk: OVERTAKEN}
    assert Execution.objects.get(pk=pk).revision == 5


def test_a_row_that_the_database_refuses_fails_alone_and_stays_marked(old_strategy: str) -> None:
    ids = marked(5)
    refuse(ids[2])
    outcome = strategy().cycle()
    assert (outcome.succeeded, list(outcome.failed)) == (4, [ids[2]])
    assert "refused by a test" in outcome.failed[ids[2]]
    assert strategy().backlog() == 1
