"""A project sends its reads to a replica. Ours are decisions, so they read what was written."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connections, models, router

from executions.creation import NewExecution, create
from executions.deletion import delete
from executions.manual_status import finish_as_success
from executions.models import Execution, Quarantine, Task
from executions.quarantines import quarantine, release
from executions.reports import Report, report
from executions.stops import stop
from tasks.jobs import TrackedExecution
from tasks.pipeline.reconciliation import reconcile
from tasks.pipeline.refresher import refresh_claim
from tasks.queue import execution_queue
from tests import servers
from tests.conftest import TEMPLATE
from tests.integration.database_state import rows
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import AGES_AGO, drifted, made, member, status_of

pytestmark = pytest.mark.usefixtures("replica", "redis")


class ReadsFromTheReplica:
    def db_for_read(self, model: type[models.Model], **_: Any) -> str:
        return "replica"

    def db_for_write(self, model: type[models.Model], **_: Any) -> str:
        return "default"


@pytest.fixture
def replica(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A replica that has not received a row yet, and never will."""
    name = f"{database}_replica"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
        connections.settings["replica"] = {**connections.settings["default"], "NAME": name}
        monkeypatch.setattr(router, "routers", [*router.routers, ReadsFromTheReplica()])
        yield
        connections["replica"].close()
        del connections["replica"]
        del connections.settings["replica"]
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_our_tables_are_read_from_the_primary_and_the_projects_tables_where_its_router_says() -> None:
    asked = [Execution, Task, Quarantine, TrackedExecution, User]
    assert [router.db_for_read(one) for one in asked] == ["default"] * 4 + ["replica"]
    assert {router.db_for_write(one) for one in asked} == {"default"}


def test_reports_refreshes_stops_and_hand_set_statuses_see_changes_of_a_moment_ago() -> None:
    execution, tasks = made(2)
    report([Report(tasks[0], "Success")])
    assert stop(execution.pk) == 1
    assert status_of(execution) == "Stopped"
    assert execution.tasks.get(pk=tasks[1]).execution.status == "Stopped"
    alone = create(NewExecution("TEST"))
    finish_as_success(alone.pk)
    assert status_of(alone) == "Success"
    assert TrackedExecution.objects.get(pk=alone.pk).status == "Success"
    assert delete([alone.pk]) == 1


def test_reconcile_and_release_see_changes_of_a_moment_ago(redis: Redis) -> None:
    lost, held, free = drifted(), drifted(), drifted()
    quarantine([held.pk, free.pk], 5)
    Quarantine.objects.filter(pk=free.pk).update(at=AGES_AGO)
    assert reconcile(full=True).marked == 1
    assert release([held.pk]) == [held.pk]
    assert rows(Quarantine) == {}
    members = {member(one) for one in (lost, held, free)}
    assert whole_redis(redis)["queue:v2"] == members
    claim = execution_queue().claim("me", 10).claim
    assert refresh_claim(claim).changed == 3
    assert {status_of(one) for one in (lost, held, free)} == {"Success"}
