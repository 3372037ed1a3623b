"""Tombstones of deleted tasks: one for each, in bounds, and forgotten after their time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from harbor_refresh.executions.lifecycle.deletion import is_deleted
from harbor_refresh.executions.models import DeletedTask, Task
from tests.integration.executions.hook_requests import recorded
from tests.integration.sample_executions import delete

pytestmark = pytest.mark.usefixtures("database")


def known() -> dict[int, str]:
    return dict(DeletedTask.objects.values_list("task_id", "job_id"))


def _buried(**ages: int) -> None:
    now = timezone.now()
    DeletedTask.objects.bulk_create(
        DeletedTask(task_id=10**6 + number, job_id=job, at=now - timedelta(days=days))
        for number, (job, days) in enumerate(ages.items())
    )


def test_each_deleted_task_leaves_a_tombstone_and_no_other_does() -> None:
    doomed, gone = recorded("a", "", "c")
    recorded("d")
    assert delete([doomed.pk, 10**9]) == 1
    assert known() == {task.pk: task.job_id for task in gone}
    assert [one.job_id for one in Task.objects.all()] == ["d"]


def test_a_deleted_task_is_found_by_its_id_or_its_job() -> None:
    execution, (task, _) = recorded("a", "")
    delete([execution.pk])
    assert is_deleted(task.pk, [])
    assert is_deleted(0, ["x", "a"])
    assert not is_deleted(0, ["x", ""])
    assert not is_deleted(task.pk + 2, [""])


def test_each_delete_forgets_old_tombstones_so_they_stay_bounded_without_a_sweep() -> None:
    _buried(a=30, b=8, c=6)
    execution, _ = recorded("d")
    delete([execution.pk])
    assert set(known().values()) == {"c", "d"}
