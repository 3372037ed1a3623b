"""What a project has before our apps are installed, it has afterwards: its admin, its broker, its settings."""

from pathlib import Path
from typing import Any

import pytest

from tests.hosts.host import GUESTS, LOOK, Host
from tests.variants import variants

JOINED = """
from harbor_refresh.tasks.broker.celery_app import connect

connect(app)
"""
OWN_SITE = """
from django.contrib import admin
from django.urls import path
from shop.sites import ops

urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]
"""
#: The app that a project adds for `doctor` and `alive`.
COMMANDS = "harbor_refresh"
PROJECTS: dict[str, dict[str, Any]] = {
    "a plain admin": {},
    "a second site": {"urls": OWN_SITE},
    "a schedule of beat": {"apps": ["django.contrib.admin", "django_celery_beat"]},
    "unfold": {"apps": ["unfold", "unfold.contrib.filters", "django.contrib.admin"]},
    "our apps first": {"apps": [*GUESTS, "django.contrib.admin"], "guest": False},
    # in our own service it replaces pages and templates, and makes a Celery app
    "the app of our commands first": {"apps": [COMMANDS, "django.contrib.admin"]},
}


@pytest.mark.parametrize("project", variants(*PROJECTS))
def test_its_admin_its_broker_and_its_settings_stay_as_they_were(project: str, tmp_path: Path) -> None:
    options = PROJECTS[project]
    apps = [one for one in options.get("apps", ["django.contrib.admin"]) if one not in (COMMANDS, *GUESTS)]
    before = Host(tmp_path / "before", "none", **(options | {"guest": False, "apps": apps})).ask(LOOK)
    after = Host(tmp_path / "after", "none", celery=JOINED, **options).ask(LOOK)
    assert after == before
    assert before["sites"]["admin"]["screens"]["auth.User"] == "shop.people.admin.PeopleAdmin"


def test_a_screen_of_the_project_for_one_of_our_models_stays(tmp_path: Path) -> None:
    own = """
        from django.contrib import admin
        from harbor_refresh.executions.models import Execution

        admin.site.register(Execution)
    """
    files = {"first__admin": own, "first____init__": ""}
    host = Host(tmp_path, "none", apps=["shop.first", "django.contrib.admin"], **files)
    screen = """
        from django.contrib import admin
        from harbor_refresh.executions.models import Execution

        print(json.dumps(type(admin.site._registry[Execution]).__module__))
    """
    assert host.ask(screen) == "django.contrib.admin.options"


@pytest.mark.parametrize("guest", [False, True])
def test_staff_who_may_change_users_cannot_become_superusers(guest: bool, tmp_path: Path, database: str) -> None:
    """The project's own screen of users refuses it."""
    exploit = """
        from django.contrib.auth.models import Permission, User
        from django.test import Client

        clerk = User.objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
        client = Client()
        client.force_login(clerk)
        page = f"/admin/auth/user/{clerk.pk}/change/"
        form = dict.fromkeys(("is_staff", "is_active", "is_superuser"), "on")
        form |= {"username": "clerk", "email": "new@shop.example"}
        form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
        statuses = [client.get(page).status_code, client.post(page, form).status_code]
        clerk.refresh_from_db()
        print(json.dumps([*statuses, clerk.email, clerk.is_superuser]))
    """
    host = Host(tmp_path, database, guest=guest)
    assert host.ask(exploit) == [200, 302, "new@shop.example", False]


def test_its_own_variables_and_settings_mean_its_own_servers(tmp_path: Path) -> None:
    asked = """
        from harbor_refresh.executions.conf import intake_settings
        from harbor_refresh.tasks.conf import refresh_settings

        conf, intake = refresh_settings(), intake_settings()
        asked = [conf.redis_url, conf.max_attempts, conf.report_url, conf.interval]
        print(json.dumps([*asked, intake.retention_days, intake.kept, intake.history_days]))
    """
    assert Host(tmp_path, "none").ask(asked) == ["redis://localhost:6379/0", 5, "", 30, 0, {}, 0]
    own = """
        HARBOR_REFRESH = {
            "REDIS_URL": "redis://refresh.shop:6379/3",
            "MAX_ATTEMPTS": 7,
            "REPORT_URL": "https://a.shop/b",
            "RETENTION_DAYS": 90,
            "VENDOR_EXECUTION_RETENTION_COUNT": {"EXPORT": 5},
        }
    """
    given = Host(tmp_path, "none", settings=own).ask(asked)
    assert given == ["redis://refresh.shop:6379/3", 7, "https://a.shop/b/", 30, 90, {"EXPORT": 5}, 0]


def test_the_queue_is_on_the_broker_of_the_project_if_that_is_a_redis(tmp_path: Path) -> None:
    host = Host(tmp_path, "none", broker="redis://broker.shop:6379/2")
    asked = (
        "from harbor_refresh.tasks.conf import refresh_settings\nprint(json.dumps(refresh_settings().redis_url))"
    )
    # Celery itself reads this variable, before the setting of that name
    assert host.ask(asked, CELERY_BROKER_URL="") == "redis://broker.shop:6379/2"
    assert host.ask(asked, CELERY_BROKER_URL="amqp://broker.shop//") == "redis://localhost:6379/0"


@pytest.mark.parametrize("word", ["check", "celery"])
def test_no_variable_of_the_project_ends_its_programs(word: str, tmp_path: Path) -> None:
    host = Host(tmp_path, "none", celery=JOINED)
    words = ["-m", "django", "check"] if word == "check" else ["-m", "celery", "-A", "shop", "report"]
    done = host.run(*words)
    assert (done.returncode, "takes" in done.stderr) == (0, False), done.stderr


def test_another_database_of_the_project_gets_no_table_of_ours(tmp_path: Path) -> None:
    """It may be no PostgreSQL, and a run of tests migrates each database."""
    legacy = f"DATABASES['legacy'] = {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': {str(tmp_path / 'db')!r}}}"
    host = Host(tmp_path, "none", celery=JOINED, settings=legacy)
    done = host.run("-m", "django", "migrate", "--database", "legacy")
    assert done.returncode == 0, done.stderr
    tables = """
        from django.db import connections

        print(json.dumps(sorted(connections["legacy"].introspection.table_names())))
    """
    found = host.ask(tables)
    assert "auth_user" in found
    assert [one for one in found if one.startswith(("execution", "task"))] == []
