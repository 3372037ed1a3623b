"""Beat's schedule, users and groups: a host keeps its own pages, and in ours no account can gain permissions."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from harbor_refresh.executions.models import AuditEntry
from tests.integration.admin_client import act, signed_in, told

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


@pytest.mark.parametrize("task", ["x" * 201, "a\x00b"], ids=["too long", "NUL"])
def test_a_task_whose_name_cannot_be_stored_is_refused_in_the_form(
    admin: Client, own: PeriodicTask, task: str
) -> None:
    form = {"name": own.name, "task": task, "interval": own.interval.pk, "args": "[]", "kwargs": "{}"}
    answer = admin.post(f"{TASKS}{own.pk}/change/", form)
    assert [*answer.context["adminform"].form.errors] == ["task"]


def test_a_row_whose_arguments_the_task_does_not_take_is_not_run_and_says_why(
    admin: Client, own: PeriodicTask
) -> None:
    PeriodicTask.objects.filter(pk=own.pk).update(args="[1]")
    (said,) = told(act(admin, TASKS, "run_tasks", [own.pk]))
    assert said.startswith("error: Not all of them were sent: TypeError: reconcile() takes 0 positional arguments")


def test_headers_may_be_emptied(admin: Client, own: PeriodicTask) -> None:
    form = {"name": "Own too", "task": own.task, "interval": own.interval.pk, "args": "[]", "kwargs": "{}"}
    admin.post(f"{TASKS}{own.pk}/change/", form | {"headers": ""})
    own.refresh_from_db()
    assert (own.name, own.headers) == ("Own too", "{}")


def test_a_crontab_that_cannot_be_read_is_refused_in_the_form(admin: Client) -> None:
    usual = dict.fromkeys(("minute", "hour", "day_of_month", "month_of_year", "day_of_week"), "*")
    answer = admin.post(f"{CRONTABS}add/", usual | {"minute": "-1", "timezone": "UTC"})
    assert [*answer.context["adminform"].form.errors] == ["minute"]


def test_a_row_and_its_interval_are_deleted(admin: Client, own: PeriodicTask) -> None:
    before = names()
    admin.post(f"{TASKS}{own.pk}/delete/", {"post": "yes"})
    assert names() == before - {"Own"}
    admin.post(f"{INTERVALS}{own.interval.pk}/delete/", {"post": "yes"})
    assert not IntervalSchedule.objects.filter(period="minutes").exists()


USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"
EVERY_RIGHT = [f"{verb}_{model}" for verb in ("view", "add", "change", "delete") for model in ("user", "group")]


@pytest.fixture
def staff() -> Client:
    """Create a user with all permissions on users and groups, who is no superuser."""
    return signed_in(*EVERY_RIGHT)


def accounts() -> list[Any]:
    """Return all values that give an account permissions."""
    return [
        list(User.objects.order_by("pk").values()),
        list(User.user_permissions.through.objects.values_list("user", "permission")),
        list(User.groups.through.objects.values_list("user", "group")),
        list(Group.objects.order_by("pk").values()),
        list(Group.permissions.through.objects.values_list("group", "permission")),
    ]


def a_group() -> Group:
    group = Group.objects.create(name="operators")
    group.permissions.add(Permission.objects.get(codename="view_execution"))
    return group


def test_staff_with_all_permissions_on_users_and_groups_can_give_no_account_more_permissions(
    staff: Client,
) -> None:
    me, root = User.objects.get(), User.objects.create_superuser("root", password="secret")
    other, group = User.objects.create_user("other"), a_group()
    every_permission = list(Permission.objects.values_list("pk", flat=True))
    before = accounts()
    raised = {
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "user_permissions": every_permission,
        "groups": [group.pk],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00",
    }
    password = {"usable_password": "true", "password1": "new secret 1", "password2": "new secret 1"}
    answers = [
        *(
            staff.post(f"{USERS}{one.pk}/change/", {"username": one.username, **raised})
            for one in (me, other, root)
        ),
        *(staff.post(f"{USERS}{one.pk}/password/", password) for one in (other, root)),
        *(staff.post(f"{USERS}{one.pk}/delete/", {"post": "yes"}) for one in (other, root)),
        staff.post(f"{USERS}add/", {"username": "new", **password, **raised}),
        staff.post(f"{GROUPS}{group.pk}/change/", {"name": "operators", "permissions": every_permission}),
        staff.post(f"{GROUPS}add/", {"name": "new", "permissions": every_permission}),
        staff.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}),
    ]
    assert {answer.status_code for answer in answers} == {403}
    for address, pk in ((USERS, root.pk), (GROUPS, group.pk)):
        staff.post(address, {"action": "delete_selected", "_selected_action": [pk], "post": "yes", "index": 0})
    assert accounts() == before


def test_staff_may_look_at_users_and_groups_and_see_no_password(staff: Client) -> None:
    root, group = User.objects.create_superuser("root", password="secret"), a_group()
    pages = [USERS, f"{USERS}{root.pk}/change/", GROUPS, f"{GROUPS}{group.pk}/change/"]
    answers = [staff.get(page) for page in pages]
    assert [answer.status_code for answer in answers] == [200] * 4
    _, salt, secret = root.password.rsplit("$", 2)
    shown = answers[1].content.decode()
    assert "root" in shown
    assert salt not in shown
    assert secret not in shown
    assert ">Username</label>" in shown
    assert ">Password</label>" not in shown


def test_a_superuser_changes_users_and_groups() -> None:
    admin = signed_in(superuser=True)
    other, group = User.objects.create_user("other"), a_group()
    pages = [f"{USERS}add/", f"{USERS}{other.pk}/change/", f"{USERS}{other.pk}/password/", f"{GROUPS}add/"]
    assert [admin.get(page).status_code for page in pages] == [200] * 4
    told = {"username": "other", "is_staff": "on", "is_active": "on", "groups": [group.pk]}
    told |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    assert admin.post(f"{USERS}{other.pk}/change/", told).status_code == 302
    other.refresh_from_db()
    assert (other.is_staff, list(other.groups.all())) == (True, [group])


def test_a_password_that_resembles_the_name_of_its_user_is_refused() -> None:
    with pytest.raises(ValidationError, match="too similar to the username"):
        validate_password("operator-anna-1", User(username="operator-anna"))
