"""Firings of periodic jobs over the status hook: each has an execution, which is created once."""

from typing import Any

import pytest

from harbor_refresh.executions.models import Execution, Task
from tests.integration.concurrency import Pause, at_once, in_background, wait_until
from tests.integration.database_state import rows, waiting_for_locks
from tests.integration.executions.hook_requests import BEGUN, answer, firing, recorded
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database", "secret")


def tasks() -> dict[str, tuple[str, int, int]]:
    found = Task.objects.order_by("pk")
    return {one.job_id: (one.status, one.status_revision, one.run_count) for one in found}


def executions() -> list[tuple[str, int, str, Any]]:
    return list(Execution.objects.order_by("pk").values_list("vendor_type", "vendor_id", "trigger", "extra_attrs"))


def test_the_first_report_of_a_firing_creates_its_execution_and_the_schedule_shows_it() -> None:
    schedule, (task,) = recorded("p", vendor="RETENTION", vendor_id=7, extra_attrs={"policy": 3})
    assert answer(firing(f"p@{BEGUN}", "p", revision=BEGUN), task.pk) == (200, "")
    assert tasks() == {"p": ("Running", BEGUN, 1), f"p@{BEGUN}": ("Running", BEGUN, 1)}
    assert executions() == [
        ("RETENTION", 7, "MANUAL", {"policy": 3}),
        ("RETENTION", 7, "SCHEDULE", {"policy": 3}),
    ]
    fired = Task.objects.get(job_id=f"p@{BEGUN}")
    assert (fired.extra_attrs, fired.vendor_type) == ({"upstream_job_id": "p"}, "RETENTION")
    assert fired.execution_id != schedule.pk


def test_a_firing_ends_and_the_next_one_has_an_execution_of_its_own() -> None:
    _, (task,) = recorded("p")
    for at in (BEGUN, BEGUN + 60):
        for status in ("Running", "Success"):
            assert answer(firing(f"p@{at}", "p", status, at), task.pk) == (200, "")
    assert tasks() == {
        "p": ("Success", BEGUN + 60, 2),
        f"p@{BEGUN}": ("Success", BEGUN, 1),
        f"p@{BEGUN + 60}": ("Success", BEGUN + 60, 1),
    }
    before = rows(Task), rows(Execution)
    for at in (BEGUN, BEGUN + 60):
        assert answer(firing(f"p@{at}", "p", "Running", at), task.pk) == (200, ""), "a late report"
    assert (rows(Task), rows(Execution)) == before


def test_a_firing_is_for_the_object_of_its_schedule_also_if_its_key_is_text() -> None:
    recorded("p", vendor="RETENTION", vendor_id="library/app")
    assert answer(firing("p@1", "p")) == (200, "")
    assert [one.vendor_key for one in Execution.objects.order_by("pk")] == ["library/app"] * 2


def test_a_check_in_of_a_firing_creates_its_execution_and_changes_no_status() -> None:
    recorded("p")
    for _ in range(2):
        assert answer(firing("p@1", "p", check_in="pong=1")) == (200, "")
    assert tasks() == {"p": ("Pending", 0, 0), "p@1": ("Pending", 0, 0)}
    assert answer(firing("p@1", "p", "Success")) == (200, "")
    assert tasks() == {"p": ("Success", BEGUN, 1), "p@1": ("Success", BEGUN, 1)}


def test_a_second_report_waits_until_the_first_has_created_the_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    from harbor_refresh.executions.api import hook

    recorded("p")
    with Pause("created") as pause:
        create = hook.create

        def slowly(new: Any) -> Execution:
            pause("created", [])
            return create(new)

        monkeypatch.setattr(hook, "create", slowly)
        with in_background(lambda: answer(firing("p@1", "p"))) as first:
            pause.wait_until_reached()
            with in_background(lambda: answer(firing("p@1", "p", "Success"))) as second:
                wait_until(lambda: waiting_for_locks() == 1, "the second report waits for the schedule's task")
                pause.go_on.set()
                assert (first(), second()) == ((200, ""), (200, ""))
    assert tasks() == {"p": ("Success", BEGUN, 1), "p@1": ("Success", BEGUN, 1)}


def test_firings_of_one_schedule_at_the_same_moment_each_create_theirs() -> None:
    recorded("p")
    calls = [lambda at=at: answer(firing(f"p@{at}", "p", revision=BEGUN + at)) for at in range(6)]
    assert at_once(*calls) == [(200, "")] * 6
    assert tasks()["p"][:2] == ("Running", BEGUN + 5)
    assert Execution.objects.filter(trigger="SCHEDULE").count() == 6


def test_a_firing_that_was_deleted_is_not_created_again() -> None:
    recorded("p")
    assert answer(firing("p@1", "p")) == (200, "")
    assert delete([Execution.objects.latest("pk").pk]) == 1
    assert answer(firing("p@1", "p", "Success")) == (200, ""), "the schedule still shows it"
    assert tasks() == {"p": ("Success", BEGUN, 1)}


def test_an_unknown_schedule_is_404_and_a_deleted_one_is_410_unless_the_firing_is_there() -> None:
    assert answer(firing("p@1", "p"))[0] == 404
    schedule, _ = recorded("p")
    assert answer(firing("p@1", "p")) == (200, "")
    delete([schedule.pk])
    assert answer(firing("p@1", "p", "Success")) == (200, "")
    assert answer(firing("p@2", "p"))[0] == 410
    assert tasks() == {"p@1": ("Success", BEGUN, 1)}


def test_a_job_that_names_itself_as_upstream_is_no_firing() -> None:
    recorded("p")
    assert answer(firing("p", "p")) == (200, "")
    assert Execution.objects.count() == 1
