"""Beat's schedule in the admin: actions on its rows and their entries, edits and deletions."""

import pytest
from django.test import Client
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from harbor_refresh.executions.models import AuditEntry
from tests.integration.admin_client import act

pytestmark = pytest.mark.usefixtures("database")

TASKS = "/admin/django_celery_beat/periodictask/"
INTERVALS = "/admin/django_celery_beat/intervalschedule/"


def names() -> set[str]:
    return set(PeriodicTask.objects.values_list("name", flat=True))


@pytest.fixture
def own(database: str) -> PeriodicTask:
    """A row of an administrator, with an interval of its own."""
    interval = IntervalSchedule.objects.create(every=11, period="minutes")
    return PeriodicTask.objects.create(name="Own", task="tasks.reconcile", interval=interval)


def test_each_action_on_a_row_has_an_entry(admin: Client, own: PeriodicTask, redis: object) -> None:
    acts = {"disable_tasks": False, "toggle_tasks": True, "enable_tasks": True, "run_tasks": True}
    for action, is_enabled in acts.items():
        act(admin, TASKS, action, [own.pk])
        own.refresh_from_db()
        assert own.enabled is is_enabled
    entries = AuditEntry.objects.order_by("pk").values_list("by", "verb", "kind", "target", "detail")
    assert list(entries) == [
        ("operator", verb, "schedule", str(own.pk), f"Own: {act}")
        for verb, act in (("change", "disable"), ("change", "toggle"), ("change", "enable"), ("run", "run"))
    ]


def test_a_row_and_its_interval_are_deleted(admin: Client, own: PeriodicTask) -> None:
    before = names()
    admin.post(f"{TASKS}{own.pk}/delete/", {"post": "yes"})
    assert names() == before - {"Own"}
    admin.post(f"{INTERVALS}{own.interval.pk}/delete/", {"post": "yes"})
    assert not IntervalSchedule.objects.filter(period="minutes").exists()


def test_a_row_is_renamed(admin: Client, own: PeriodicTask) -> None:
    form = {
        **{"name": "Renamed", "task": "", "regtask": "tasks.sweep", "interval": own.interval.pk},
        **{"args": "[]", "kwargs": "{}", "headers": "{}", "description": ""},
    }
    assert admin.post(f"{TASKS}{own.pk}/change/", form).status_code == 302
    own.refresh_from_db()
    assert (own.name, own.task) == ("Renamed", "tasks.sweep")
