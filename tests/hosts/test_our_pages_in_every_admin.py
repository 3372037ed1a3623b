"""Our pages in the admins that projects have: Django's own, one that asks for a second factor, and unfold's."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from redis import Redis

from harbor_refresh.executions.admin.site_pages import PAGES
from tests.browser.samples import make_samples
from tests.hosts.host import Host

pytestmark = pytest.mark.slow

UNFOLD = ["unfold", "unfold.contrib.filters", "django.contrib.admin"]
#: Unfold's templates need its site, so a project with a plain one keeps Django's, and has unfold after them.
AFTER = ["django.contrib.admin", "unfold.apps.BasicAppConfig"]
BASIC = ["unfold.apps.BasicAppConfig", "django.contrib.admin"]
OPS = """
from django.contrib import admin
from django.urls import path
from harbor_refresh.executions.admin.site_pages import register_admin
from shop.sites import ops

register_admin(ops)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]
"""
ONLY_OPS = OPS.replace('path("admin/", admin.site.urls), ', "")
UNFOLD_SITE = """
from django.urls import path
from harbor_refresh.executions.admin.site_pages import register_admin
from unfold.sites import UnfoldAdminSite


class ShopSite(UnfoldAdminSite):
    def has_permission(self, request):
        return super().has_permission(request) and request.session.get("second_factor") == "given"


ops = ShopSite(name="ops")
register_admin(ops)
urlpatterns = [path("ops/", ops.urls)]
"""
#: Python then says of each that there is no such module.
WITHOUT = """
import sys

sys.modules |= dict.fromkeys(["unfold", "django_celery_beat", "flower", "prometheus_client", "whitenoise"])
"""
#: The options of each project, and below which address our pages are.
PROJECTS: dict[str, tuple[dict[str, Any], str]] = {
    "a plain admin": ({}, "/admin/"),
    "a plain admin, and no package that is not needed": ({"settings": WITHOUT}, "/admin/"),
    "a second site with a second factor": ({"urls": OPS}, "/ops/"),
    "only a site of its own": ({"urls": ONLY_OPS}, "/ops/"),
    "unfold": ({"apps": UNFOLD}, "/admin/"),
    "unfold's basic app and a plain admin": ({"apps": AFTER}, "/admin/"),
    "unfold's basic app and a site of its own": ({"apps": BASIC, "urls": UNFOLD_SITE}, "/ops/"),
}
#: Of the projects above, those in which a session without a second factor is let in nowhere.
ASK_FOR_A_SECOND_FACTOR = [name for name in PROJECTS if "second factor" in name or "of its own" in name]

WALK = """
import re
from django.contrib.admin.sites import all_sites
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import get_resolver
from harbor_refresh.executions.admin.site_pages import PAGES

BELOW, FACTOR = {below!r}, {factor!r}
client = Client(raise_request_exception=False)
client.force_login(User.objects.get(username="root"))
session = client.session
session["second_factor"] = FACTOR
session.save()
get_resolver().url_patterns
site = {{one.name: one for one in all_sites}}[BELOW.strip("/")]
answers = {{}}
for model, screen in site._registry.items():
    if model not in PAGES:
        continue
    row = model.objects.order_by("pk").first()
    for pattern in screen.urls:
        route = str(pattern.pattern).replace("<path:object_id>", str(row.pk if row else 1))
        address = f"{{BELOW}}{{model._meta.app_label}}/{{model._meta.model_name}}/{{route}}"
        answer = client.get(address)
        # the catch-all of Django leads from an id to its page
        place = answer.headers.get("Location", "")
        links = sorted(set(re.findall(r'(?:href|action|data-live)="(/[^"?]*)', answer.content.decode())))
        wrong = [one for one in links if one != "/" and not one.startswith((BELOW, "/static/"))]
        answers[f"{{model._meta.model_name}} {{pattern.name or 'of an id'}}"] = [answer.status_code, place, wrong]
print(json.dumps(answers))
"""
ACT = """
from django.contrib.auth.models import User
from django.test import Client
from harbor_refresh.executions.models import AuditEntry, Execution

BELOW = {below!r}
client = Client()
client.force_login(User.objects.get(username="root"))
session = client.session
session["second_factor"] = "given"
session.save()
told = []
running = Execution.objects.get(status="Running", vendor_type="REPLICATION")
failed = Execution.objects.get(status="Error")
page = f"{{BELOW}}harbor_executions/execution/{{running.pk}}/"
shown = client.get(f"{{page}}change/").content.decode()
of_page = ("execution-panel", "its-tasks", f"{{page}}stop/", f"{{page}}place/", "History")
told.append([one for one in of_page if one not in shown])
asked = client.get(f"{{page}}stop/")
told.append("Waiting jobs do not begin any more" in asked.content.decode())
done = client.post(f"{{page}}stop/", {{"confirmed": "yes"}})
told.append(done.headers.get("Location"))
running.refresh_from_db()
told.append(running.status)
form = {{"action": "remove", "_selected_action": [failed.pk], "index": 0}}
asked = client.post(f"{{BELOW}}harbor_executions/execution/", form)
told.append("are deleted with them, for good" in asked.content.decode())
client.post(f"{{BELOW}}harbor_executions/execution/", form | {{"confirmed": "yes"}})
told.append(Execution.objects.filter(pk=failed.pk).exists())
asked = client.get(f"{{BELOW}}harbor_tasks/pause/?verb=recover")
told.append(asked.status_code)
form = {{"name": "robot", "may_read": "on", "expires_at_0": "", "expires_at_1": ""}}
made = client.post(f"{{BELOW}}harbor_executions/apitoken/add/", form)
told.append("This is the only time" in made.content.decode())
entries = AuditEntry.objects.filter(by="root").order_by("pk")
told.append(list(entries.values_list("verb", flat=True)))
hook = f"{{BELOW}}harbor_executions/subscription/1/rotate/"
client.get(hook)
rotated = client.post(hook, {{"confirmed": "yes", "old_secret_seconds": "0"}})
told.append("This is the only time" in rotated.content.decode())
print(json.dumps(told))
"""


@pytest.fixture
def shown(database: str, redis: Redis) -> str:
    """A database with one of everything that our pages show, and an account that may see and do all."""
    User.objects.create(username="viewer")
    User.objects.create_superuser("root")
    make_samples()
    return database


def host_of(project: str, folder: Path, database: str) -> tuple[Host, str]:
    options, below = PROJECTS[project]
    return Host(folder, database, **options), below


@pytest.mark.parametrize("project", PROJECTS)
def test_every_page_answers_and_its_links_stay_on_its_site(project: str, tmp_path: Path, shown: str) -> None:
    host, below = host_of(project, tmp_path, shown)

    answers = host.ask(WALK.format(below=below, factor="given"), CELERY_BROKER_URL="")

    refused = {name: one for name, one in answers.items() if one[0] not in (200, 302)}
    # nobody adds or deletes these rows by Django's own pages
    assert {name.split()[1].rsplit("_", 1)[-1] for name in refused} <= {"add", "delete"}
    assert {one[0] for one in refused.values()} <= {403}
    assert {place for _, place, _ in answers.values() if "login" in place} == set()
    assert {link for *_, links in answers.values() for link in links} == set()
    lists = {f"{one.model_name} {one.app_label}_{one.model_name}_changelist" for one in (m._meta for m in PAGES)}
    assert {name for name, (status, *_) in answers.items() if status == 200} >= lists


@pytest.mark.parametrize("project", ASK_FOR_A_SECOND_FACTOR)
def test_no_page_and_no_part_of_a_page_is_shown_to_whom_the_site_refuses(
    project: str, tmp_path: Path, shown: str
) -> None:
    host, below = host_of(project, tmp_path, shown)

    answers = host.ask(WALK.format(below=below, factor="not given"), CELERY_BROKER_URL="")

    to_login = {name for name, (status, place, _) in answers.items() if status == 302 and "/login/?next=" in place}
    forbidden = {name for name, (status, *_) in answers.items() if status == 403}
    assert set(answers) == to_login | forbidden
    assert {name.split()[1] for name in forbidden} == {
        "harbor_executions_execution_panel",
        "harbor_executions_execution_place",
        "harbor_executions_execution_running",
        "harbor_tasks_pause_live",
    }


@pytest.mark.parametrize(
    "project",
    ["a plain admin", "a second site with a second factor", "unfold", "unfold's basic app and a site of its own"],
)
def test_actions_ask_first_and_do_it(project: str, tmp_path: Path, shown: str) -> None:
    host, below = host_of(project, tmp_path, shown)

    told = host.ask(ACT.format(below=below), CELERY_BROKER_URL="")

    page = told.pop(2)
    assert page.startswith(f"{below}harbor_executions/execution/")
    assert page.endswith("/change/")
    assert told == [[], True, "Stopped", True, False, 200, True, ["stop", "delete", "create"], True]
