"""The executions of an object on its page in the project's own admin, whatever its key is."""

from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from tests.hosts.fleet import BOTH_SITES, MADE, PROJECTS, host_of

pytestmark = pytest.mark.slow

LOOK = """
import html, re

sign_in("root")
told = {}
for thing in things:
    with CaptureQueriesContext(connection) as captured:
        shown = client.get(page(thing)).content.decode()
    asked = [one for one in captured.captured_queries if '"execution"' in one["sql"] or '"task"' in one["sql"]]
    links = [int(pk) for pk in re.findall(r'href="[^"]*/harbor_executions/execution/([0-9]+)/change/"', shown)]
    (all_of_it,) = re.findall(r'href="([^"]*/harbor_executions/execution/[?][^"]*)"', shown) or [""]
    listed = client.get(html.unescape(all_of_it)).content.decode()
    counted = re.findall(r'/harbor_executions/execution/([0-9]+)/change/', listed)
    told[thing.name] = [
        len(asked),
        links == [one.pk for one in made[thing][:1:-1]],
        sorted(set(map(int, counted))) == [one.pk for one in made[thing]],
        all_of_it.startswith(below),
        "1 of 2 ended" in shown and "0 of 2 ended" in shown and "The newest 10." in shown,
        re.findall(r'executions/([a-z-]+)[.](?:css|js)"', shown),
        '"><b>' in shown,
    ]
print(json.dumps(told))
"""
SAVE = """
sign_in("root")
told = {}
before = list(Execution.objects.order_by("pk").values())
for thing in things:
    for form in ({"name": "new"}, {"name": ""}, {"name": "newer", "form-TOTAL_FORMS": "7", "form-0-id": "1"}):
        answer = client.post(page(thing), form)
        thing.refresh_from_db()
        told.setdefault(thing._meta.model_name, []).append([answer.status_code, thing.name])
told["unchanged"] = list(Execution.objects.order_by("pk").values()) == before
told["none"] = "No data" in client.get(page(other)).content.decode()
added = client.get(f"{below}fleet/box/add/")
told["added"] = [added.status_code, "parts.css" in added.content.decode()]
for name in ("may see executions", "may not"):
    sign_in(name)
    shown = client.get(page(box)).content.decode()
    told[name] = ["1 of 2 ended" in shown, "box" in shown or "newer" in shown]
print(json.dumps(told))
"""


@pytest.fixture
def people(database: str) -> str:
    User.objects.create_superuser("root")
    for name in ("may see executions", "may not"):
        User.objects.create(username=name, is_staff=True)
    seen = Permission.objects.get(codename="view_execution")
    User.objects.get(username="may see executions").user_permissions.add(seen)
    return database


@pytest.mark.parametrize("project", PROJECTS)
def test_the_newest_ten_are_shown_by_four_queries_with_a_way_to_all(
    project: str, tmp_path: Path, people: str
) -> None:
    host, below = host_of(project, tmp_path, people)

    told = host.ask(f"below = {below!r}\n" + MADE + LOOK, CELERY_BROKER_URL="")

    assert told == {name: [4, True, True, True, True, ["parts"], False] for name in ("box", "device", "document")}


def test_a_page_is_saved_as_without_it_and_shows_executions_to_users_with_that_permission_alone(
    tmp_path: Path, people: str
) -> None:
    host, below = host_of("a plain admin", tmp_path, people)
    # the project's own permissions are those of models that no migration of these tests has made
    may_see = "from django.contrib.admin import ModelAdmin\nModelAdmin.has_view_permission = lambda *_: True\n"

    told = host.ask(f"below = {below!r}\n{may_see}" + MADE + SAVE, CELERY_BROKER_URL="")

    saved = [[302, "new"], [200, "new"], [302, "newer"]]
    assert told == {
        "box": saved,
        "device": saved,
        "document": saved,
        "unchanged": True,
        "none": True,
        "added": [200, False],
        "may see executions": [True, True],
        "may not": [False, True],
    }


def test_on_a_site_without_our_pages_nothing_is_linked(tmp_path: Path, people: str) -> None:
    host, _ = host_of("a second site", tmp_path, people, urls=BOTH_SITES.format(register=""))
    look = 'sign_in("root")\nprint(json.dumps([client.get(page(one)).content.decode() for one in things]))'

    for shown in host.ask('below = "/ops/"\n' + MADE + look, CELERY_BROKER_URL=""):
        assert "1 of 2 ended" in shown
        assert "harbor_executions" not in shown


def test_an_inline_that_does_not_say_whose_executions_it_shows_is_an_error(tmp_path: Path, people: str) -> None:
    host, _ = host_of("a plain admin", tmp_path, people)
    checked = """
        from django.contrib import admin
        from harbor_refresh import ExecutionInline
        from shop.fleet.admin import Upgrades
        from shop.fleet.models import Box

        class TooLong(Upgrades):
            vendor_type = "x" * 65

        print(json.dumps([
            [one.id for one in inline(Box, admin.site).check()] for inline in (ExecutionInline, TooLong, Upgrades)
        ]))
    """
    assert host.ask(checked) == [["harbor_executions.E003"], ["harbor_executions.E003"], []]
