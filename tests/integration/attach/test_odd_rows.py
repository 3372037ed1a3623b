"""No page, no operation of the API and no command dies of a row as Harbor may have written it."""

from datetime import UTC
from unittest.mock import ANY

import pytest
from django.test import Client
from pytest_django import Settings

from examples.simulation.invariants import violations
from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Delivery, Subscription
from harbor_refresh.executions.models.notifications import Payload
from harbor_refresh.executions.news.deliveries.claims import read_changes
from harbor_refresh.executions.news.deliveries.messages import body_of, message
from harbor_refresh.executions.news.deliveries.subscriptions import new_secret
from harbor_refresh.executions.queries.error_groups import by_hour, by_vendor, newest_errors
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import examine
from tests.harbor.rows import NEVER, T1, T2, asked, execution, task
from tests.integration.checks.examined import CHECKS, found
from tests.integration.command_output import data, said
from tests.integration.executions.api.api_client import Program, token

pytestmark = pytest.mark.usefixtures("attached", "redis")

NULLS_OF_AN_EXECUTION = (
    "vendor_id", "status", "status_message", "extra_attrs", "start_time", "end_time", "revision", "update_time",
)  # fmt: skip
NULLS_OF_A_TASK = (
    "job_id", "status_revision", "status_message", "run_count", "extra_attrs", "creation_time", "start_time",
    "update_time", "end_time",
)  # fmt: skip


#: A surrogate without its pair, which the type `json` takes, and UTF-8 does not.
HALF = '{"a": "\\ud800"}'


@pytest.fixture
def rows() -> dict[str, int]:
    """The ids of executions, by what is odd about them."""
    null = execution(**dict.fromkeys(NULLS_OF_AN_EXECUTION))
    for word in ("Running", "Error", "Stopped"):
        task(null, word, **dict.fromkeys(NULLS_OF_A_TASK))
    no_tasks = execution(**dict.fromkeys(NULLS_OF_AN_EXECUTION))
    year_1 = execution("Error", start_time=NEVER, end_time=NEVER, update_time=NEVER, extra_attrs="[1, 2]")
    task(year_1, "Error", start_time=NEVER, end_time=NEVER, update_time=NEVER, extra_attrs='"text"')
    words = execution("Succeed", vendor_type="", trigger="", extra_attrs='{"a": "\\u0000", "a": 1e400}')
    task(words, "Finished", vendor_type="a:b")
    task(words, "", vendor_type="")
    half = execution("Error", extra_attrs=HALF)
    task(half, "Error")
    quarantine([null], 5)
    return {"null": null, "no tasks": no_tasks, "year 1": year_1, "words": words, "half": half}


EXECUTIONS, TASKS = "/admin/harbor_executions/execution/", "/admin/harbor_executions/task/"
PAGES = [
    "/admin/",
    EXECUTIONS,
    *(f"{EXECUTIONS}?{one}" for one in (
        "status__exact=Running", "status__exact=Error", "trigger=MANUAL", "vendor=REPLICATION", "vendor_id=1",
        "vendor_id=a+key", "quarantined=yes",
        "q=1", "q=REPLICATION", "q=a=1", "q=a.b=x", "start_time_from_0=2020-01-01",
        "has_jobs=yes",
    )),
    TASKS,
    *(f"{TASKS}?{one}" for one in (
        "status__exact=Error", "status__exact=Success", "q=job-1", "q=1", "execution__id__exact=1",
    )),
    f"{TASKS}errors/",
    "/admin/harbor_executions/statuschange/",
    "/admin/harbor_executions/delivery/",
    "/admin/harbor_tasks/job/",
    "/admin/harbor_tasks/job/?status__exact=Error",
    "/admin/harbor_tasks/pause/",
    "/healthz",
    "/metrics",
]  # fmt: skip


def test_every_page_is_shown(rows: dict[str, int], admin: Client, settings: Settings) -> None:
    settings.REFRESH_METRICS_NETWORKS = ("127.0.0.1/32",)
    refresh(list(rows.values()))
    answered = {address: admin.get(address).status_code for address in PAGES}
    for pk in rows.values():
        for address in (f"{EXECUTIONS}{pk}/change/", f"{EXECUTIONS}{pk}/panel/"):
            answered[address] = admin.get(address).status_code
    for (pk,) in asked("SELECT id FROM task"):
        answered[f"{TASKS}{pk}/change/"] = admin.get(f"{TASKS}{pk}/change/").status_code
    assert {address: code for address, code in answered.items() if code != 200} == {}


def test_every_question_of_the_api_is_answered(rows: dict[str, int]) -> None:
    refresh(list(rows.values()))
    program = Program(token(*Scope))
    listed = program.get("/executions")["items"]
    assert sorted(one["id"] for one in listed) == sorted(rows.values())
    for query in ("status=Running", "trigger=MANUAL", "vendor_type=A", "vendor_id=a+key", "attribute=a=1"):
        program.get(f"/executions?{query}")
    for pk in rows.values():
        shown = program.get(f"/executions/{pk}")
        assert shown["id"] == pk
        program.get(f"/executions/{pk}/history")
        for one in program.get(f"/executions/{pk}/tasks")["items"]:
            assert program.get(f"/tasks/{one['id']}") == {**one, "extra_attrs": ANY}
    program.get("/queue")


def test_every_command_goes_on(rows: dict[str, int]) -> None:
    refresh(list(rows.values()))
    for words in (
        ("harbor", "list"),
        ("harbor", "list", "--status", "Error"),
        ("harbor", "list", "--attribute", "a=1"),
        *(("harbor", "show", pk) for pk in rows.values()),
        *(("harbor", "why", pk) for pk in rows.values()),
        ("harbor", "status"),
        ("harbor", "quarantine"),
        ("harbor", "repair", "refresh", *rows.values()),
        ("harbor", "repair", "drift", "--full"),
        ("harbor", "repair", "drift"),
    ):
        assert said(*words) or words
        assert data(*words) is not None


def test_an_execution_waits_for_no_task_whose_code_a_bulk_stop_has_left() -> None:
    of = execution("Stopped")
    task(of, "Stopped", 0, end_time=None)
    assert "task_id" not in data("harbor", "why", of)


def test_a_notification_tells_of_them(rows: dict[str, int]) -> None:
    """The rows of what is told, for a webhook of every status."""
    moment = T1.replace(tzinfo=UTC)
    values = {"vendor_type": "A", "revision": 1, "from_status": "", "to_status": "Error", "changed_at": moment}
    told = read_changes(
        [
            Delivery(id=number, subscription_id=1, execution_id=pk, **values)
            for number, pk in enumerate(rows.values())
        ]
    )
    assert len(told) == len(rows)
    webhook = Subscription(url="https://example.com/", secret=new_secret())
    for change in told.values():
        assert message(webhook, change).body
        assert body_of(change, Payload.STANDARD)
        assert body_of(change, Payload.SLACK)
        assert (change.status_message, change.duration_seconds) == ("", None)


def test_an_error_that_has_no_end_is_in_no_hour(rows: dict[str, int]) -> None:
    errors, _ = newest_errors()
    assert sum(one.count for one in by_vendor(errors)) == 3
    assert [(one.key, one.count) for one in by_hour(errors)] == [(T2.replace(second=0, minute=0, tzinfo=UTC), 1)]


def test_the_invariants_and_the_doctor_read_them(rows: dict[str, int]) -> None:
    refresh(list(rows.values()))
    assert violations(at_most=5) == []
    assert found("tables.migrations") == []
    assert len(list(examine(CHECKS, Facts()))) == len(CHECKS)
