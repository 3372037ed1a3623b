"""docs/jobs.md, followed word for word in projects that know nothing of ours.

The blocks of code come from the page; what stands here is what such a project has before it reads the page, and
has after it. What it has in its environment means its own servers, and none is a variable of ours.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from redis import Redis

from tests import pages, servers
from tests.distribution.environments import CHECKOUT, Environment
from tests.distribution.fixtures import Make
from tests.faults.cluster import Cluster
from tests.hosts.host import ITS_VARIABLES, LOOK
from tests.rabbitmq import RabbitMQ
from tests.waiting import wait_for

IMAGES_MODELS = """
from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    pass


class Device(models.Model):
    pass
"""
IMAGES_ADMIN = """
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from shop.images.models import Device, Person


@admin.register(Person)
class PersonAdmin(UserAdmin):
    pass
"""
IMAGES = {"images/__init__.py": "", "images/models.py": IMAGES_MODELS, "images/admin.py": IMAGES_ADMIN}
TASKS = """
import time

from shop.celery import app

copy = time.sleep


def layers_of(artifact):
    return [0.05, 0.05]
"""
PROGRAM = """
import django

django.setup()

from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from shop.images.models import Device
from shop.images.tasks import replicate, start

artifacts = ["a", "b", "c"]
BLOCKS
print(execution, execution.status, execution.progress().counts)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.create_superuser("admin"))
below = "/SITE/"
pages = ["harbor_executions/execution/", f"harbor_executions/execution/{execution.pk}/change/"]
pages += ["harbor_executions/task/", "harbor_tasks/job/", "harbor_tasks/pause/", "images/person/"]
print({client.get(below + page).status_code for page in pages})
device = Device.objects.create()
start("UPGRADE", vendor_id=device.pk, jobs=[])
if "SITE" == "admin":  # the docs register the page of a device on the default site
    page = client.get(f"/admin/images/device/{device.pk}/change/").content
    assert b"All in the list of executions" in page, page
(site,) = [one for one in all_sites if one.name == "SITE"]
print(type(site).__name__, type(site._registry[get_user_model()]).__module__)
"""
#: A Celery app as Celery's manual has it, with tasks and routes of its own.
CELERY = """
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_routes = {"*": {"queue": "celery"}}
app.autodiscover_tasks()
"""
SITE = """
from django.contrib.admin import AdminSite
from django.contrib.auth.admin import UserAdmin
from shop.images.models import Person


class ShopSite(AdminSite):
    pass


site = ShopSite(name="desk")
site.register(Person, UserAdmin)
"""
SITE_URLS = """
from django.urls import path
from shop.desk import site

urlpatterns = [path("desk/", site.urls)]
"""
BACKEND = """
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    pass
"""
FIVE_MINUTES, READY = "Five minutes from an existing Celery project", "In a project of your own"
#: The page names the apps as the wheel does, and says how a checkout has them.
OF_A_CHECKOUT = {"harbor_refresh.executions": "executions", "harbor_refresh.tasks": "tasks"}


def blocks(title: str, language: str, place: Environment) -> list[str]:
    """The code of a section of the page, for that place."""
    read = as_in_a_checkout if place is CHECKOUT else str
    return [read(one) for one in pages.codes(pages.section(pages.read("docs/jobs.md"), title), language)]


def as_in_a_checkout(code: str) -> str:
    for in_the_wheel, here in OF_A_CHECKOUT.items():
        code = code.replace(f'"{in_the_wheel}', f'"{here}')
    return code


@dataclass(frozen=True)
class Project:
    """What a project has besides what `django-admin startproject` makes. `celery` is its Celery app, if it has
    one; `refreshes` is what the hint of a check adds to the second worker."""

    celery: str = ""
    settings: str = ""
    files: dict[str, str] = field(default_factory=dict)
    site: str = "admin"
    engine: str = "django.db.backends.postgresql"
    on_rabbitmq: bool = False
    refreshes: str = ""


PROJECTS = {
    "a new project": Project(),
    "with Celery and django-celery-beat": Project(
        celery=CELERY,
        settings='INSTALLED_APPS = ["django_celery_beat", *INSTALLED_APPS]\n'
        'CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"\n',
    ),
    "with an admin site of its own": Project(files={"desk.py": SITE, "urls.py": SITE_URLS}, site="desk"),
    "with a subclass of the backend": Project(
        engine="shop.backend", files={"backend/__init__.py": "", "backend/base.py": BACKEND}
    ),
    "with RabbitMQ": Project(on_rabbitmq=True),
    "with one task for each process": Project(
        settings="CELERY_WORKER_MAX_TASKS_PER_CHILD = 1\nSILENCED_SYSTEM_CHECKS = ['harbor_refresh.W005']\n",
        refreshes="--max-tasks-per-child 1000000",
    ),
}


class Shop:
    """A project as Django begins one. `follow` makes it ready as the page says."""

    def __init__(self, project: Project, place: Environment, cluster: Cluster, database: str, broker: str) -> None:
        self.project = project
        self.place = place
        self.cluster = cluster
        # `cluster.env` is that of the tests, with addresses that are ours
        kept = {name: cluster.env[name] for name in ("PATH", "HOME", "LANG") if name in cluster.env}
        its = ITS_VARIABLES | {"CELERY_BROKER_URL": broker}
        path = place.variables(cluster.root)["PYTHONPATH"]
        cluster.env = kept | its | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop.settings"}
        self.run("-m", "django", "startproject", "shop", str(cluster.root), DJANGO_SETTINGS_MODULE="")
        url = urlsplit(database)
        server = {"NAME": url.path[1:], "USER": url.username, "HOST": url.hostname, "PORT": url.port}
        self._add("settings.py", f"DATABASES['default'] = { ({'ENGINE': project.engine} | server)!r}\n")
        self._add("settings.py", project.settings)
        self._add("settings.py", "INSTALLED_APPS += ['shop.images']\nAUTH_USER_MODEL = 'images.Person'\n")
        for name, text in (IMAGES | project.files).items():
            self._add(name, text)
        if project.celery:
            self._add("celery.py", project.celery)
            self._add("__init__.py", "from shop.celery import app as celery_app\n")

    def follow(self) -> list[str]:
        """Write what the page says; return the commands that it says to run."""
        installed, celery, package, own, of_celery, register, inline = blocks(READY, "python", self.place)
        own = own.replace("redis://localhost:6379/1", servers.redis.url)
        self._add("settings.py", "\n".join(["", installed, own, of_celery]))
        if self.project.celery:  # it takes one line of that file
            self._add("celery.py", "import harbor_refresh\n" + celery.splitlines()[-1] + "\n")
        else:
            self._add("celery.py", celery)
            self._add("__init__.py", package)
        self._add("images/admin.py", inline)
        self._add("images/tasks.py", TASKS + blocks(FIVE_MINUTES, "python", self.place)[0])
        if self.project.site == "desk":
            self._add("desk.py", "import harbor_refresh\n" + register)
        return blocks(READY, "sh", self.place)[0].splitlines()

    def _add(self, name: str, text: str) -> None:
        path = self.cluster.root / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    def run(self, *words: str, **env: str) -> str:
        env = {name: value for name, value in (self.cluster.env | env).items() if value}
        return self.place.run(*words, cwd=self.cluster.root, alone=True, **env)

    def manage(self, *words: str) -> str:
        return self.run(str(self.cluster.root / "manage.py"), *words)

    def look(self) -> dict[str, Any]:
        """See what is the project's own (tests.hosts.host.LOOK)."""
        look: dict[str, Any] = json.loads(self.run("-c", LOOK).splitlines()[-1])
        return look


def part(of: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """Of these values, those that have a name in `like`."""
    return {
        name: part(of.get(name, {}), value) if isinstance(value, dict) else of.get(name)
        for name, value in like.items()
    }


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if not PROJECTS[request.param].on_rabbitmq:
        yield servers.redis.url
        return
    rabbitmq = RabbitMQ(tmp_path / "rabbitmq")
    rabbitmq.start()
    yield rabbitmq.url
    rabbitmq.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest, environment: Make) -> Environment:
    """The wheel has the extra that the project uses already, and no other: the page asks for none."""
    name, versions = request.param
    extras = "beat" if "django_celery_beat" in PROJECTS[name].settings else ""
    return CHECKOUT if versions == "checkout" else environment(extras, versions)


@pytest.fixture
def shop(
    request: pytest.FixtureRequest, place: Environment, cluster: Cluster, tmp_path: Path, broker: str
) -> Iterator[Shop]:
    name = "shop_of_somebody"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        cluster.root = tmp_path / "shop"
        cluster.root.mkdir()
        yield Shop(PROJECTS[request.param], place, cluster, servers.postgres.url_for(name), broker)
        cluster.end()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


#: In which versions; with the checkout, in those of the tests.
CASES = [(name, "pinned") for name in PROJECTS] + [
    ("a new project", "Django 6 and Celery 5.6"),
    ("with Celery and django-celery-beat", "Django 6 and Celery 5.6"),
    ("a new project", "checkout"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broker", "shop", "place"),
    [(name, name, (name, versions)) for name, versions in CASES],
    indirect=True,
    ids=[f"{name}: {versions}" for name, versions in CASES],
)
def test_executions_end_in_a_project_that_follows_the_page(shop: Shop, cluster: Cluster, redis: Redis) -> None:
    before = shop.look()
    migrate, *commands = shop.follow()
    assert part(shop.look(), like=before) == before
    shop.manage("makemigrations", "images")
    shop.manage(*migrate.removeprefix("python manage.py ").split())
    assert "no issues" in shop.manage("check", "--fail-level", "WARNING")
    shop.manage("makemigrations", "--check")
    commands = [f"{line} {shop.project.refreshes}" if "-Q" in line else line for line in commands]
    python = str(shop.place.python)
    members = [cluster.start(f"shop-{line.split()[3]}", [python, "-m", *line.split()]) for line in commands]
    program = cluster.root / "program.py"
    written = PROGRAM.replace("BLOCKS", "".join(blocks(FIVE_MINUTES, "python", shop.place)[1:]))
    program.write_text(written.replace("SITE", shop.project.site))

    said = shop.run(str(program)).splitlines()

    site = "ShopSite django.contrib.auth.admin" if shop.project.site == "desk" else "AdminSite shop.images.admin"
    assert said == ["execution 1 (REPLICATION) Success {'Success': 3}", "{200}", site]
    assert [member.process.poll() for member in members] == [None] * 3
    assert "Traceback" not in cluster.logs()
    wait_for(lambda: nothing_is_missing(shop), "beat to have sent its first tick", log=members[-1].log)


def nothing_is_missing(shop: Shop) -> bool:
    with suppress(AssertionError):  # the command ended with what is missing
        return shop.manage("refresh_queue", "check").strip() == "Nothing is missing."
    return False
