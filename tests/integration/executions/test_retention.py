"""What the sweep deletes, against a model in plain Python; and that it reads and deletes in bounded pages."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from pytest_django import Settings

from harbor_refresh.executions import sql
from harbor_refresh.executions.conf import DECLARED
from harbor_refresh.executions.lifecycle import retention
from harbor_refresh.executions.lifecycle.retention import Page, Retention, count
from harbor_refresh.executions.lifecycle.sweep import sweep
from harbor_refresh.executions.models import Execution, Quarantine, StatusChange, Task
from harbor_refresh.executions.status import FINAL
from settings import base, env
from tests.integration.executions.old_executions import ended

pytestmark = pytest.mark.usefixtures("database")


@dataclass(frozen=True)
class Made:
    """An execution as the test makes it."""

    vendor: str
    vendor_id: int
    status: str
    tasks: tuple[str, ...]
    days: int
    pk: int = 0


MADE = st.builds(
    Made,
    vendor=st.sampled_from(["A", "B", "IMAGE_SCAN"]),
    vendor_id=st.sampled_from([-1, 0, 7]),
    status=st.sampled_from(["Running", "Success", "Error"]),
    tasks=st.lists(st.sampled_from(["Success", "Success", "Error", "Running"]), max_size=3).map(tuple),
    days=st.integers(0, 4),
)
RULES = st.builds(
    Retention,
    counts=st.dictionaries(st.sampled_from(["A", "IMAGE_SCAN", "OTHER"]), st.integers(1, 3)),
    others=st.none() | st.integers(1, 4),
    older_than=st.none() | st.integers(0, 4).map(lambda days: timedelta(days=days, hours=-12)),
)


def kept(executions: list[Made], rules: Retention) -> set[int]:
    """The ids that stay, by the contract."""
    stays = set()
    for one in executions:
        newer = [e for e in executions if (e.vendor, e.vendor_id) == (one.vendor, one.vendor_id) and e.pk > one.pk]
        limit = rules.counts.get(one.vendor, rules.others)
        too_many = limit is not None and len(newer) >= limit
        too_old = rules.older_than is not None and timedelta(days=one.days) > rules.older_than
        has_ended = one.status in FINAL and "Running" not in one.tasks
        if not (has_ended and (too_many or too_old)):
            stays.add(one.pk)
    return stays


@given(st.lists(MADE, max_size=14), RULES, st.integers(1, 5), st.integers(1, 4))
@how(max_examples=60)
def test_the_sweep_deletes_what_the_model_deletes_whatever_the_size_of_its_pages(
    executions: list[Made], rules: Retention, page: int, batch: int
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE execution, task, execution_status_change, execution_quarantine CASCADE")
    executions = [
        replace(
            one,
            pk=ended(
                vendor=one.vendor,
                vendor_id=one.vendor_id,
                status=one.status,
                tasks=one.tasks,
                age=timedelta(days=one.days),
            )[0],
        )
        for one in executions
    ]
    stays = kept(executions, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "PAGE", page)
        patch.setattr(retention, "BATCH", batch)
        patch.setattr(Retention, "of_settings", lambda: rules)
        told = sum(one["executions"] for one in count(rules)[0].values())
        outcome = sweep()
    assert set(Execution.objects.values_list("pk", flat=True)) == stays
    assert set(StatusChange.objects.values_list("execution_id", flat=True)) == stays
    assert Task.objects.count() == sum(len(one.tasks) for one in executions if one.pk in stays)
    assert outcome.executions == told == len(executions) - len(stays)


def test_the_service_keeps_as_many_as_harbor_of_what_its_environment_does_not_name(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("VENDOR_EXECUTION_RETENTION_COUNT", "REPLICATION:2,PURGE_AUDIT:3,SCAN_ALL:4")
    name = "VENDOR_EXECUTION_RETENTION_COUNT"
    setattr(settings, name, env.read(DECLARED["retention_counts"], base.DEFAULTS_OF_SERVICE[name]))
    kept_of = {"IMAGE_SCAN": 1, "SBOM": 1, "SCAN_ALL": 4, "PURGE_AUDIT_LOG": 3, "EXECUTION_SWEEP": 10}
    assert Retention.of_settings() == Retention({**kept_of, "REPLICATION": 2}, others=50)


def test_what_no_setting_names_is_kept(settings: Settings) -> None:
    settings.VENDOR_EXECUTION_RETENTION_COUNT = {}
    assert Retention.of_settings() == Retention({}, others=None)
    ended(60, age=timedelta(days=4000))
    sweep()
    assert Execution.objects.count() == 60
    settings.VENDOR_EXECUTION_RETENTION_COUNT = {"SBOM": 1}
    settings.REFRESH_RETENTION_DAYS = 30
    assert Retention.of_settings() == Retention({"SBOM": 1}, None, timedelta(days=30))


def test_what_belongs_to_a_swept_execution_goes_with_it() -> None:
    old, new = ended(2, tasks=("Success", "Error"))
    for pk in (old, new):
        Quarantine.objects.create(execution_id=pk, reason="x", attempts=1)
    outcome = sweep()
    assert (outcome.executions, outcome.tasks) == (1, 2)
    for model in (Execution, Task, StatusChange, Quarantine):
        column = "id" if model is Execution else "execution_id"
        assert set(model._default_manager.values_list(column, flat=True)) == {new}, model


def test_a_batch_is_bounded_by_its_tasks_and_a_large_execution_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 10)
    page = Page(6, {pk: ("A", tasks) for pk, tasks in enumerate((4, 6, 1, 500, 0, 0), 1)})
    assert list(page.batches()) == [[1, 2], [3], [4], [5, 6]]
    assert list(Page(30, dict.fromkeys(range(30), ("A", 0))).batches()) == [
        list(range(start, start + 10)) for start in (0, 10, 20)
    ]
    assert list(Page(0).batches()) == []


def test_a_page_is_read_by_the_indexes_alone() -> None:
    """Without a sort of the table, and without the table of tasks: at any size a page costs the same."""
    ended(300, vendor="REPLICATION", tasks=("Success",) * 3)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE execution, task")
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(
            "EXPLAIN " + sql.text("harbor_refresh.executions", "find_sweepable"),
            {
                **{"after_vendor": "REPLICATION", "after_vendor_id": 1, "after_id": 200, "seen": 100},
                **{"page": 50, "named": [], "counts": [], "others": 50, "older_than": None},
            },
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "using execution_vendor" in plan, plan
    assert "Index Only Scan using task_rollup" in plan
    assert "Seq Scan" not in plan
