"""docs/start/project.md and docs/howto/existing_project.md, followed in projects that know nothing of ours.

Every command is typed and every file is written as on the page; addresses alone are replaced. What stands here is
what a project has before it follows a page. Its environment means its own servers, and has no variable of ours.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest
from redis import Redis

from tests import pages, servers, terminal
from tests.distribution.environments import CHECKOUT, Environment
from tests.distribution.fixtures import Make
from tests.distribution.project_pages import REDIS, postgres_of_the_test, write_files
from tests.faults.cluster import Cluster, Member
from tests.hosts.host import ITS_VARIABLES, LOOK
from tests.programs import needs
from tests.rabbitmq import RabbitMQ
from tests.waiting import wait_for

START, EXISTING = pages.read("docs/start/project.md"), pages.read("docs/howto/existing_project.md")
SERVERS, BEGIN, MIGRATE, PROGRAMS, KILL = (one.splitlines() for one in pages.codes(START, "sh"))
(CHECK,) = {one for one in pages.spans(START) if "harbor check" in one}
(BATCH,) = (one for one in pages.codes(START, "python") if not one.startswith("# "))
ONE_WORKER, WORKER_BY_KIND = (one.splitlines() for one in pages.codes(EXISTING, "sh") if "celery -A" in one)
APPS, OTHER_REDIS, CONNECT, REGISTER, INLINE, _PARTS = pages.codes(EXISTING, "python")

#: What the tutorial calls `$USER`: a role that may make databases, and nothing else.
DEVELOPER = "shop_developer"
PASSWORD = "of the shop's admin"
LOGGED_IN = """
from django.contrib.auth import get_user_model
from django.test import Client

users = get_user_model().objects
user = users.filter(username="admin").first() or users.create_superuser("admin")
client = Client(headers={"host": "localhost"})
client.force_login(user)


def statuses(below, *more):
    pages = [f"harbor_executions/execution/{number}" for number in ("", "1/change/")]
    pages += ["harbor_executions/task/", "harbor_tasks/job/", "harbor_tasks/pause/", *more]
    return {client.get(f"/{below}/{page}").status_code for page in pages}


"""
WAITS = """
from harbor_refresh import TrackedExecution

execution = TrackedExecution.objects.latest("pk")
print(execution.wait(timeout=300))
print(execution.progress().counts)
print(execution.tasks.filter(status_revision__gt=0).count())
"""


class Shop:
    """A project as Django begins one, on servers as they are after their installation, but for their addresses."""

    def __init__(self, place: Environment, cluster: Cluster) -> None:
        self.cluster, self.root = cluster, cluster.root
        # `cluster.env` is that of the tests, with addresses that are ours
        kept = {name: cluster.env[name] for name in ("HOME", "LANG") if name in cluster.env}
        its = {name: value for name, value in ITS_VARIABLES.items() if name != "CELERY_BROKER_URL"}  # Celery's own
        path = {"PATH": f"{place.python.parent}:{cluster.env['PATH']}"}
        path["PYTHONPATH"] = place.variables()["PYTHONPATH"]
        superuser = postgres_of_the_test()
        cluster.env = kept | its | path | superuser | {"PGUSER": DEVELOPER}
        _packages, role, database = SERVERS
        self.typed(role.removeprefix("sudo -u postgres "), USER=DEVELOPER, **superuser)
        self.typed(database)
        self.typed(BEGIN[-1])

    def typed(self, line: str, **env: str) -> str:
        return terminal.typed(line, self.root, self.cluster.env | env)

    def in_shell(self, code: str) -> str:
        """What the code prints that is pasted into `manage.py shell`."""
        return self.typed(f"python manage.py shell -v 0 <<'END'\n{code}\nEND")

    def start(self, line: str) -> Member:
        """Start a worker, beat or web server by its line of the page."""
        return self.cluster.start(f"shop-{line.split()[3]}", ["/bin/sh", "-c", f"exec {line}"])

    def checked(self) -> str:
        with suppress(AssertionError):  # the command ended with what is missing
            return self.typed(CHECK)
        return ""

    def has_nothing_missing(self) -> bool:
        return self.checked() == "Nothing is missing.\n"

    def add(self, name: str, text: str) -> None:
        path = self.root / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def look(self) -> dict[str, Any]:
        """See what is the project's own (tests.hosts.host.LOOK)."""
        said = self.typed(f"python - <<'END'\n{LOOK}\nEND", DJANGO_SETTINGS_MODULE="shop.settings")
        look: dict[str, Any] = json.loads(said.splitlines()[-1])
        return look


@pytest.fixture
def place(request: pytest.FixtureRequest, environment: Make) -> Environment:
    """Versions; and an extra that the project has already."""
    versions, extra = request.param
    return CHECKOUT if versions == "checkout" else environment(extra, versions)


@pytest.fixture
def shop(place: Environment, cluster: Cluster, tmp_path: Path) -> Iterator[Shop]:
    cluster.root = tmp_path / "shop"
    cluster.root.mkdir()
    needs("createdb")
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        try:
            yield Shop(place, cluster)
        finally:
            cluster.end()
            server.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
            server.execute(f"DROP ROLE IF EXISTS {DEVELOPER}".encode())


def redis_of_the_test() -> str:
    return servers.redis.url_for(0).removesuffix("/0")


def running() -> int:
    with psycopg.connect(servers.postgres.url_for("shop")) as database:
        found = database.execute("SELECT count(*) FROM task WHERE status = 'Running'").fetchone()
    return int(found[0]) if found else 0


def is_served(port: int) -> bool:
    with suppress(URLError), urlopen(f"http://localhost:{port}/admin/login/") as answer:
        return bool(answer.status == 200)
    return False


VERSIONS = ("pinned", "Django 6 and Celery 5.6", "checkout")


@pytest.mark.slow
@pytest.mark.parametrize("place", [(one, "") for one in VERSIONS], indirect=True, ids=VERSIONS)
def test_the_tutorial_is_followed(shop: Shop, cluster: Cluster, redis: Redis) -> None:
    write_files(shop.root, redis_of_the_test())
    migrate, superuser = MIGRATE
    shop.typed(migrate)
    terminal.answered(superuser.split(), ["", PASSWORD, PASSWORD], shop.root, cluster.env)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    *of_celery, web = PROGRAMS
    worker, refresh = (shop.start(one) for one in of_celery[:-1])
    wait_for(lambda: "No worker has run anything" in shop.checked(), "the missing beat to be told")
    beat = shop.start(of_celery[-1])
    shop.start(f"{web} {port}")
    wait_for(shop.has_nothing_missing, "beat to have sent its first tick", log=beat.log)

    assert shop.in_shell(BATCH).splitlines()[-1] == "Success"
    wait_for(lambda: is_served(port), "the web server")
    assert shop.in_shell(LOGGED_IN + "print(statuses('admin'))") == "{200}\n"

    shop.in_shell(BATCH.partition("print(")[0])
    wait_for(running, "a job to run", log=worker.log)
    shop.typed(KILL[0])
    wait_for(worker.died, "the worker to die")
    wait_for(lambda: not running(), "the other worker to notice it", log=refresh.log)
    shop.start(of_celery[0])
    *ended, again = shop.in_shell(WAITS).splitlines()
    assert ended == ["Success", "{'Success': 60}"]
    assert 1 <= int(again) <= 4


MODELS = """
from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    pass


class Device(models.Model):
    pass
"""
ADMIN = """
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from shop.images.models import Device, Person


@admin.register(Person)
class PersonAdmin(UserAdmin):
    pass
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
#: A Celery app as Celery's manual has it, with a route of its own.
CELERY = """
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_routes = {"*": {"queue": "celery"}}
app.autodiscover_tasks()
"""
#: A job in each of two queues and a callback. Each leaves a file that names its worker.
TASKS = """
import sys
from pathlib import Path

from celery import shared_task
from harbor_refresh import TrackedJob


def say(name):
    worker, _, _ = sys.argv[sys.argv.index("-n") + 1].partition("@") if "-n" in sys.argv else ("", "", "")
    (Path(__file__).parent / f"{name} {worker}").touch()


@shared_task(base=TrackedJob, queue="long")
def archive(job, artifact):
    say("archive")


@shared_task(base=TrackedJob)
def copy(job, artifact):
    say("copy")


@shared_task
def publish(ended):
    say("publish")
"""
STARTS = """
from harbor_refresh import start
from shop.images.models import Device
from shop.tasks import copy

device = Device.objects.create()
execution = start("UPGRADE", vendor_id=device.pk, jobs=[copy.s(one) for one in "abc"])
print(execution.wait(timeout=120), execution.progress().counts)
"""
STARTS_EACH_KIND = """
from harbor_refresh import start
from shop.tasks import archive, copy, publish

print(start("UPGRADE", jobs=[archive.s("a"), copy.s("b")], on_success=publish.s()).wait(timeout=120))
"""
#: The page of a device is on the default site.
SHOWS_ITS_EXECUTIONS = """
page = client.get("/admin/images/device/1/change/").content
assert b"All in the list of executions" in page, page
"""
WHOSE_ADMIN = """
from django.contrib.admin.sites import all_sites

(site,) = [one for one in all_sites if one.name == "SITE"]
print(type(site).__name__, type(site._registry[get_user_model()]).__module__)
"""


@dataclass(frozen=True)
class Project:
    """What a project has beside Celery and models with their screens. `refreshes` is what the hint of a check adds
    to the worker that refreshes."""

    settings: str = ""
    files: dict[str, str] = field(default_factory=dict)
    site: str = "admin"
    extra: str = ""
    on_rabbitmq: bool = False
    refreshes: str = ""


PROJECTS = {
    "with Celery": Project(),
    "with django-celery-beat": Project(
        settings='INSTALLED_APPS = ["django_celery_beat", *INSTALLED_APPS]\n'
        'CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"\n',
        extra="beat",
    ),
    "with an admin site of its own": Project(files={"desk.py": SITE, "urls.py": SITE_URLS}, site="desk"),
    "with RabbitMQ": Project(on_rabbitmq=True),
    "with one task for each process": Project(
        settings="CELERY_WORKER_MAX_TASKS_PER_CHILD = 1\n", refreshes=" --max-tasks-per-child 1000000"
    ),
}
#: In which versions; with the checkout, in those of the tests.
CASES = [(name, "pinned") for name in PROJECTS] + [
    ("with django-celery-beat", "Django 6 and Celery 5.6"),
    ("with django-celery-beat", "checkout"),
]


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if not PROJECTS[request.param].on_rabbitmq:
        yield servers.redis.url
        return
    rabbitmq = RabbitMQ(tmp_path / "rabbitmq")
    rabbitmq.start()
    yield rabbitmq.url
    rabbitmq.stop()


def existed(shop: Shop, project: Project, broker: str) -> None:
    """Write what the project has before it reads the page."""
    database = "DATABASES['default'] = {'ENGINE': 'django.db.backends.postgresql', 'NAME': 'shop'}\n"
    shop.add("settings.py", f"{database}CELERY_BROKER_URL = {broker!r}\nAUTH_USER_MODEL = 'images.Person'\n")
    shop.add("settings.py", f"INSTALLED_APPS += ['shop', 'shop.images']\n{project.settings}")
    shop.add("celery.py", CELERY)
    shop.add("__init__.py", "from shop.celery import app as celery_app\n")
    images = {"images/__init__.py": "", "images/models.py": MODELS, "images/admin.py": ADMIN}
    for name, text in (images | project.files).items():
        (shop.root / "shop" / name).unlink(missing_ok=True)
        shop.add(name, text)


def follow(shop: Shop, project: Project) -> None:
    """Write what the page says, and a module of jobs."""
    shop.add("settings.py", APPS)
    if project.on_rabbitmq:
        shop.add("settings.py", OTHER_REDIS.replace(REDIS, redis_of_the_test()))
    shop.add("celery.py", CONNECT)
    shop.add("tasks.py", TASKS)
    shop.add("images/admin.py", INLINE)
    if project.site == "desk":
        shop.add("desk.py", f"import harbor_refresh\n{REGISTER}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broker", "place"),
    [(name, name, (versions, PROJECTS[name].extra)) for name, versions in CASES],
    indirect=["broker", "place"],
    ids=[f"{name}: {versions}" for name, versions in CASES],
)
def test_executions_end_in_a_project_that_follows_the_page(
    name: str, shop: Shop, cluster: Cluster, broker: str, redis: Redis
) -> None:
    project = PROJECTS[name]
    existed(shop, project, broker)
    before = shop.look()
    follow(shop, project)
    assert part(shop.look(), like=before) == before
    migrate, *commands = ONE_WORKER
    shop.typed(f"python manage.py makemigrations images && {migrate}")
    assert "no issues" in shop.typed("python manage.py check --fail-level WARNING")
    shop.typed("python manage.py makemigrations --check")
    members = [shop.start(line + project.refreshes if "-Q" in line else line) for line in commands]

    assert shop.in_shell(STARTS) == "Success {'Success': 3}\n"
    looks = LOGGED_IN + f"print(statuses({project.site!r}, 'images/person/'))\n"
    looks += SHOWS_ITS_EXECUTIONS if project.site == "admin" else ""
    said = shop.in_shell(looks + WHOSE_ADMIN.replace("SITE", project.site)).splitlines()
    its_admin = "ShopSite django.contrib.auth.admin" if project.site == "desk" else "AdminSite shop.images.admin"
    assert said == ["{200}", its_admin]
    assert [member.process.poll() for member in members] == [None] * len(members)
    assert "Traceback" not in cluster.logs()
    wait_for(shop.has_nothing_missing, "beat to have sent its first tick", log=members[-1].log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broker", "place"), [("with Celery", ("checkout", ""))], indirect=True, ids=["with Celery: checkout"]
)
def test_each_kind_of_work_has_the_worker_of_the_page(shop: Shop, cluster: Cluster, broker: str) -> None:
    existed(shop, PROJECTS["with Celery"], broker)
    follow(shop, PROJECTS["with Celery"])
    shop.typed(f"python manage.py makemigrations images && {ONE_WORKER[0]}")
    members = [shop.start(line) for line in (*WORKER_BY_KIND, ONE_WORKER[-1])]
    assert shop.in_shell(STARTS_EACH_KIND) == "Success\n"
    said = {"archive long", "copy jobs", "publish deliveries"}
    wait_for(
        lambda: {one.name for one in (shop.root / "shop").iterdir() if " " in one.name} == said,
        "the jobs and the callback to have run where they should",
        log=members[-2].log,
    )
    assert [member.process.poll() for member in members] == [None] * len(members)
    assert "Traceback" not in cluster.logs()


def part(of: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """Of these values, those that have a name in `like`."""
    return {
        name: part(of.get(name, {}), value) if isinstance(value, dict) else of.get(name)
        for name, value in like.items()
    }
