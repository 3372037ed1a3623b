"""A project sends its reads to a replica. Ours are decisions, so they read what was written."""

import pytest
from django.contrib.auth.models import User
from django.db import router

from harbor_refresh.executions.lifecycle.creation import NewExecution, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import finish, stop
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.status import Status
from tests.integration.sample_executions import delete, made, status_of

pytestmark = pytest.mark.usefixtures("replica")


def test_reports_refreshes_stops_and_hand_set_statuses_see_changes_of_a_moment_ago() -> None:
    """The tables of the project are read where its router says."""
    assert [router.db_for_read(one) for one in (Execution, User)] == ["default", "replica"]
    execution, tasks = made(2)
    report([Report(tasks[0], "Success")])
    assert stop(execution.pk) == 1
    assert status_of(execution) == "Stopped"
    assert execution.tasks.get(pk=tasks[1]).execution.status == "Stopped"
    alone = create(NewExecution("TEST"))
    finish(alone.pk, Status.SUCCESS)
    assert status_of(alone) == "Success"
    assert delete([alone.pk]) == 1
