"""Beat's schedule in the admin: the rows that the program needs are not deleted, renamed or given another task."""

import pytest
from django.test import Client
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from harbor_refresh.executions.models import AuditEntry
from tests.integration.admin_client import act, told

pytestmark = pytest.mark.usefixtures("database")

TASKS = "/admin/django_celery_beat/periodictask/"
INTERVALS = "/admin/django_celery_beat/intervalschedule/"
CRONTABS = "/admin/django_celery_beat/crontabschedule/"


def names() -> set[str]:
    return set(PeriodicTask.objects.values_list("name", flat=True))


@pytest.fixture
def own(database: str) -> PeriodicTask:
    """A row of an administrator, with an interval of its own."""
    interval = IntervalSchedule.objects.create(every=11, period="minutes")
    return PeriodicTask.objects.create(name="Own", task="tasks.reconcile", interval=interval)


def test_deleting_a_needed_row_is_refused_with_the_reason_and_shows_the_row_again(admin: Client) -> None:
    row = PeriodicTask.objects.get(name="Reconcile")
    before = names()
    for send in (admin.get, admin.post):
        answer = send(f"{TASKS}{row.pk}/delete/", {"post": "yes"})
        assert (answer.status_code, answer["Location"]) == (302, f"{TASKS}{row.pk}/change/")
        assert told(answer)[-1] == (
            "error: The program needs the row Reconcile. Disable it instead: a disabled row does not run."
        )
    assert names() == before


def test_chosen_rows_are_not_deleted_if_a_needed_one_is_among_them(admin: Client, own: PeriodicTask) -> None:
    row = PeriodicTask.objects.get(name="Sweep")
    before = names()
    form = {"action": "delete_selected", "_selected_action": [own.pk, row.pk], "post": "yes"}
    page = admin.post(TASKS, form).content.decode()
    assert "The program needs the row Sweep. Disable it instead" in page
    assert "Yes, I" not in page
    assert names() == before


def test_each_action_on_a_row_has_an_entry_if_it_did_something(
    admin: Client, own: PeriodicTask, redis: object
) -> None:
    for action in ("disable_tasks", "disable_tasks", "toggle_tasks", "enable_tasks", "run_tasks"):
        act(admin, TASKS, action, [own.pk])
    entries = AuditEntry.objects.order_by("pk").values_list("by", "verb", "kind", "target", "detail")
    assert list(entries) == [
        ("operator", verb, "schedule", str(own.pk), f"Own: {became}")
        for verb, became in (("change", "disabled"), ("change", "enabled"), ("run", "enabled"))
    ]


@pytest.mark.parametrize("way", ["by itself", "chosen"])
def test_the_schedule_that_a_needed_row_follows_is_not_deleted(admin: Client, way: str) -> None:
    """The database would delete the row with its interval."""
    before = names()
    interval = PeriodicTask.objects.get(name="Claim batches").interval
    crontab = CrontabSchedule.objects.create(minute="5")
    PeriodicTask.objects.filter(name="Sweep").update(interval=None, crontab=crontab)
    for address, one, name in ((INTERVALS, interval, "Claim batches"), (CRONTABS, crontab, "Sweep")):
        if way == "chosen":
            form = {"action": "delete_selected", "_selected_action": [one.pk], "post": "yes"}
            page = admin.post(address, form)
        else:
            page = admin.post(f"{address}{one.pk}/delete/", {"post": "yes"})
        assert f"The program needs the row {name}." in page.content.decode()
    assert names() == before


def test_an_own_row_is_deleted_as_before(admin: Client, own: PeriodicTask) -> None:
    before = names()
    admin.post(f"{TASKS}{own.pk}/delete/", {"post": "yes"})
    assert names() == before - {"Own"}
    admin.post(f"{INTERVALS}{own.interval.pk}/delete/", {"post": "yes"})
    assert not IntervalSchedule.objects.filter(period="minutes").exists()


def test_a_needed_row_is_disabled_and_keeps_its_name_and_task(admin: Client) -> None:
    row = PeriodicTask.objects.get(name="Reconcile")
    form = {
        **{"name": "Renamed", "task": "tasks.sweep", "regtask": "tasks.sweep", "interval": row.interval.pk},
        **{"args": "[]", "kwargs": "{}", "headers": "{}", "description": "ours"},
    }
    answer = admin.post(f"{TASKS}{row.pk}/change/", form)
    assert answer.status_code == 302, answer.context["errors"]
    row.refresh_from_db()
    assert (row.name, row.task, row.enabled, row.description) == ("Reconcile", "tasks.reconcile", False, "ours")


def test_an_own_row_is_renamed_as_before(admin: Client, own: PeriodicTask) -> None:
    form = {
        **{"name": "Renamed", "task": "", "regtask": "tasks.sweep", "interval": own.interval.pk},
        **{"args": "[]", "kwargs": "{}", "headers": "{}", "description": ""},
    }
    assert admin.post(f"{TASKS}{own.pk}/change/", form).status_code == 302
    own.refresh_from_db()
    assert (own.name, own.task) == ("Renamed", "tasks.sweep")
