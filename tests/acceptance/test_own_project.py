"""docs/jobs.md, followed word for word in projects that know nothing of ours.

The blocks of code come from the page, with every setting, and so do the commands; addresses alone are replaced.
What stands here is what such a project has before it reads the page, and has after it: a new project has nothing.
What it has in its environment means its own servers, and none is a variable of ours.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from redis import Redis

from tests import pages, servers
from tests.distribution.environments import CHECKOUT, Environment
from tests.distribution.fixtures import Make
from tests.distribution.jobs_page import FIVE_MINUTES, READY, REDIS, blocks, lines, postgres_of_the_test
from tests.faults.cluster import Cluster, Member
from tests.hosts.host import ITS_VARIABLES, LOOK
from tests.programs import needs
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
PROGRAM = """
import django

django.setup()

from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.test import Client

BLOCKS
print(execution, execution.status, execution.progress().counts)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.create_superuser("admin"))
below = "/SITE/"
pages = ["harbor_executions/execution/", f"harbor_executions/execution/{execution.pk}/change/"]
pages += ["harbor_executions/task/", "harbor_tasks/job/", "harbor_tasks/pause/", "USERS/"]
print({client.get(below + page).status_code for page in pages})
(site,) = [one for one in all_sites if one.name == "SITE"]
print(type(site).__name__, type(site._registry[get_user_model()]).__module__)
"""
#: The docs register the page of a device on the default site.
OF_A_DEVICE = """
from shop.images.models import Device

device = Device.objects.create()
start("UPGRADE", vendor_id=device.pk, jobs=[])
page = client.get(f"/admin/images/device/{device.pk}/change/").content
assert b"All in the list of executions" in page, page
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
#: What the page calls `$USER`: a role that may make databases, and nothing else.
DEVELOPER = "shop_developer"


@dataclass(frozen=True)
class Project:
    """What a project has besides what `django-admin startproject` makes: a Celery app, with its database and its
    broker; and models of its own, with their screens. `refreshes` is what the hint of a check adds to the second
    worker."""

    has_celery: bool = True
    has_models: bool = True
    settings: str = ""
    files: dict[str, str] = field(default_factory=dict)
    site: str = "admin"
    engine: str = "django.db.backends.postgresql"
    on_rabbitmq: bool = False
    refreshes: str = ""

    @property
    def admin_of_users(self) -> str:
        if not self.has_models:
            return "AdminSite django.contrib.auth.admin"
        return "ShopSite django.contrib.auth.admin" if self.site == "desk" else "AdminSite shop.images.admin"


PROJECTS = {
    "a new project": Project(has_celery=False, has_models=False),
    "with models": Project(has_celery=False),
    "with Celery and django-celery-beat": Project(
        settings='INSTALLED_APPS = ["django_celery_beat", *INSTALLED_APPS]\n'
        'CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"\n',
    ),
    "with an admin site of its own": Project(files={"desk.py": SITE, "urls.py": SITE_URLS}, site="desk"),
    "with a subclass of the backend": Project(
        engine="shop.backend", files={"backend/__init__.py": "", "backend/base.py": BACKEND}
    ),
    "with RabbitMQ": Project(on_rabbitmq=True),
    "with one task for each process": Project(
        settings="CELERY_WORKER_MAX_TASKS_PER_CHILD = 1\n",
        refreshes="--max-tasks-per-child 1000000",
    ),
}


class Shop:
    """A project as Django begins one, on servers as they are after their installation, but for their addresses.
    `follow` makes it ready as the page says."""

    def __init__(self, project: Project, place: Environment, cluster: Cluster, broker: str) -> None:
        self.project = project
        self.place = place
        self.cluster = cluster
        # `cluster.env` is that of the tests, with addresses that are ours
        kept = {name: cluster.env[name] for name in ("PATH", "HOME", "LANG") if name in cluster.env}
        its = {name: value for name, value in ITS_VARIABLES.items() if name != "CELERY_BROKER_URL"}  # Celery's own
        path = place.variables(cluster.root)["PYTHONPATH"]
        superuser = postgres_of_the_test()
        its |= superuser | {"PGUSER": DEVELOPER}
        cluster.env = kept | its | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop.settings"}
        _servers, role, database, _wheel, begin, *self.commands = lines(READY)  # those two were installed before
        self.shell(role.removeprefix("sudo -u postgres "), USER=DEVELOPER, **superuser)
        self.shell(database)
        self.run("-m", *begin.replace("django-admin", "django").split(), DJANGO_SETTINGS_MODULE="")
        if project.has_celery:
            connection = {"ENGINE": project.engine, "NAME": "shop"}
            its_own = f"DATABASES['default'] = {connection!r}\nCELERY_BROKER_URL = {broker!r}\n"
            self.add("settings.py", its_own + "INSTALLED_APPS += ['shop']\n")
            self.add("celery.py", CELERY)
            self.add("__init__.py", "from shop.celery import app as celery_app\n")
        if project.has_models:
            self.add("settings.py", "INSTALLED_APPS += ['shop.images']\nAUTH_USER_MODEL = 'images.Person'\n")
        self.add("settings.py", project.settings)
        for name, text in ((IMAGES if project.has_models else {}) | project.files).items():
            self.add(name, text)

    def follow(self) -> list[str]:
        """Write what the page says; return the commands that it says to run."""
        redis = servers.redis.url_for(0).removesuffix("/0")
        found = (one.replace(REDIS, redis) for one in blocks(READY, "python"))
        apps, new, on_rabbitmq, celery, package, more, register, inline = found
        self.add("settings.py", "\n" + apps)
        if self.project.has_celery:  # it takes one line of that file
            self.add("settings.py", on_rabbitmq if self.project.on_rabbitmq else more)
            self.add("celery.py", "import harbor_refresh\n" + celery.splitlines()[-1] + "\n")
        else:
            self.add("settings.py", new)
            self.add("celery.py", celery)
            self.add("__init__.py", package)
        if self.project.has_models:
            self.add("images/admin.py", inline)
        self.add("tasks.py", blocks(FIVE_MINUTES, "python")[0])
        if self.project.site == "desk":
            self.add("desk.py", "import harbor_refresh\n" + register)
        return self.commands

    @property
    def program(self) -> str:
        """What the page does with its job, and what is looked at afterwards."""
        text = PROGRAM + (OF_A_DEVICE if self.project.has_models and self.project.site == "admin" else "")
        text = text.replace("BLOCKS", "".join(blocks(FIVE_MINUTES, "python")[1:]))
        users = "images/person" if self.project.has_models else "auth/user"
        return text.replace("SITE", self.project.site).replace("USERS", users)

    def shell(self, line: str, **env: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env=self.cluster.env | env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def add(self, name: str, text: str) -> None:
        path = self.cluster.root / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    def run(self, *words: str, **env: str) -> str:
        env = {name: value for name, value in (self.cluster.env | env).items() if value}
        return self.place.run(*words, cwd=self.cluster.root, alone=True, **env)

    def start(self, line: str) -> Member:
        """Start a worker or beat by its line of the page."""
        words = line.split()
        return self.cluster.start(f"shop-{words[3]}", [str(self.place.python), "-m", *words])

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
    cluster.root = tmp_path / "shop"
    cluster.root.mkdir()
    needs("createdb")
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        try:
            yield Shop(PROJECTS[request.param], place, cluster, broker)
        finally:
            cluster.end()
            server.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
            server.execute(f"DROP ROLE IF EXISTS {DEVELOPER}".encode())


#: In which versions; with the checkout, in those of the tests.
CASES = [(name, "pinned") for name in PROJECTS] + [
    ("a new project", "Django 6 and Celery 5.6"),
    ("with Celery and django-celery-beat", "Django 6 and Celery 5.6"),
    ("a new project", "checkout"),
    ("with Celery and django-celery-beat", "checkout"),
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
    if not shop.project.has_celery:  # the page tells it where its servers are
        del before["broker"], before["settings"]["DATABASES"]
    migrate, *commands = shop.follow()
    assert part(shop.look(), like=before) == before
    if shop.project.has_models:
        shop.manage("makemigrations", "images")
    shop.manage(*migrate.removeprefix("python manage.py ").split())
    assert "no issues" in shop.manage("check", "--fail-level", "WARNING")
    shop.manage("makemigrations", "--check")
    commands = [f"{line} {shop.project.refreshes}" if "-Q" in line else line for line in commands]
    members = [shop.start(line) for line in commands]
    program = cluster.root / "program.py"
    program.write_text(shop.program)

    said = shop.run(str(program)).splitlines()

    ended = "execution 1 (REPLICATION) Success {'Success': 3}"
    assert said == [ended, "{200}", shop.project.admin_of_users]
    assert [member.process.poll() for member in members] == [None] * 3
    assert "Traceback" not in cluster.logs()
    wait_for(lambda: nothing_is_missing(shop), "beat to have sent its first tick", log=members[-1].log)


#: Jobs of both queues and a callback, and which worker has each.
OF_EACH_KIND = """

import sys
from pathlib import Path


def say(name):
    worker, _, _ = sys.argv[sys.argv.index("-n") + 1].partition("@")
    (Path(__file__).parent / f"{name} {worker}").touch()


@app.task(base=TrackedJob, queue="long")
def archive(job, artifact):
    say("archive")


@app.task(base=TrackedJob)
def copy(job, artifact):
    say("copy")


@app.task
def publish(ended):
    say("publish")
"""
STARTS_EACH_KIND = """
import django

django.setup()

from harbor_refresh import start
from shop.tasks import archive, copy, publish

print(start("REPLICATION", jobs=[archive.s("a"), copy.s("b")], on_success=publish.s()).wait(timeout=120))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broker", "shop", "place"), [("a new project", "a new project", ("a new project", "checkout"))], indirect=True
)
def test_each_kind_of_work_has_the_worker_that_the_page_gives_it(shop: Shop, cluster: Cluster) -> None:
    migrate, *_, beat = shop.follow()
    shop.add("tasks.py", OF_EACH_KIND)
    shop.manage(*migrate.removeprefix("python manage.py ").split())
    page = pages.read("docs/jobs.md").split("\n### A worker for each kind of work\n")[1].split("\n## ")[0]
    members = [shop.start(line) for line in [*pages.lines(page), beat]]
    assert shop.run("-c", STARTS_EACH_KIND) == "Success\n"
    said = {"archive long", "copy jobs", "publish deliveries"}
    wait_for(
        lambda: {one.name for one in (cluster.root / "shop").iterdir() if " " in one.name} == said,
        "the jobs and the callback to have run where they should",
        log=members[-2].log,
    )
    assert [member.process.poll() for member in members] == [None] * len(members)
    assert "Traceback" not in cluster.logs()


def nothing_is_missing(shop: Shop) -> bool:
    with suppress(AssertionError):  # the command ended with what is missing
        return shop.manage("harbor", "check").strip() == "Nothing is missing."
    return False
