"""finish: set the status of an execution without tasks by hand, once."""

from functools import partial

import pytest
from django.db import connection

from harbor_refresh.executions.errors import AlreadyFinal, HasTasks, NoSuchExecution
from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.stops import finish, stop
from harbor_refresh.executions.models import Execution, StatusChange
from harbor_refresh.executions.status import Status
from tests.integration.database_state import rows
from tests.integration.sample_executions import AGES_AGO, made, status_of

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.ERROR])
def test_an_execution_without_tasks_ends_by_hand_once_and_the_history_records_it(status: Status) -> None:
    execution = create(NewExecution("TEST"))
    finish(execution.pk, status, "because")
    execution.refresh_from_db()
    assert (execution.status, execution.status_message, execution.revision) == (
        status,
        "because",
        1,
    )
    assert execution.end_time is not None
    before = (rows(Execution), rows(StatusChange))
    with pytest.raises(AlreadyFinal, match=f"execution {execution.pk} is {status} already"):
        finish(execution.pk, Status.ERROR)
    assert (rows(Execution), rows(StatusChange)) == before
    steps = execution.history.values_list("revision", "from_status", "to_status")
    assert list(steps) == [(1, "Running", status)]


def test_an_execution_with_tasks_cannot_be_set_by_hand() -> None:
    execution, _ = made()
    before = rows(Execution)
    with pytest.raises(HasTasks, match=f"execution {execution.pk} has tasks"):
        finish(execution.pk, Status.SUCCESS)
    assert rows(Execution) == before


def test_what_does_not_exist_cannot_be_set_or_stopped() -> None:
    for verb in (partial(finish, status=Status.SUCCESS), stop):
        with pytest.raises(NoSuchExecution, match="there is no execution 99"):
            verb(99)


def test_a_status_of_an_old_release_is_final_and_cannot_be_set_by_hand() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_status_known")
        cursor.execute("ALTER TABLE execution DROP CONSTRAINT execution_ends_when_final")
    execution = Execution.objects.create(vendor_type="TEST", status="Succeed", end_time=AGES_AGO)
    with pytest.raises(AlreadyFinal):
        finish(execution.pk, Status.ERROR)
    assert stop(execution.pk) == 0
    assert status_of(execution) == "Succeed"
