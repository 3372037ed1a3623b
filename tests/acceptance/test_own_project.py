"""docs/jobs.md, followed word for word in a project that knows nothing of ours.

The blocks of code come from the page; what stands here is what such a project has before it reads the page.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest
from redis import Redis

from tests import servers
from tests.distribution.conftest import Make
from tests.distribution.environments import CHECKOUT, Environment
from tests.faults.cluster import ROOT, Cluster

SETTINGS = """
import os
from urllib.parse import urlsplit

url = urlsplit(os.environ["DATABASE_URL"])
DATABASES["default"] = {"ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "USER": url.username}
DATABASES["default"] |= {"HOST": url.hostname, "PORT": url.port}
INSTALLED_APPS += ["shop.images"]
AUTH_USER_MODEL = "images.Person"
"""
MODELS = """
from django.contrib.auth.models import AbstractUser


class Person(AbstractUser):
    pass
"""
ADMIN = """
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from shop.images.models import Person


@admin.register(Person)
class PersonAdmin(UserAdmin):
    pass
"""
CELERY = """
from celery import Celery

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
"""
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
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django_celery_beat.models import PeriodicTask
from shop.images.tasks import replicate, start

artifacts = ["a", "b", "c"]
BLOCKS
print(execution, execution.status, execution.progress().counts)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.create_superuser("admin"))
pages = ["harbor_executions/execution/", f"harbor_executions/execution/{execution.pk}/change/"]
pages += ["harbor_executions/task/", "harbor_tasks/job/"]
pages += ["images/person/", "images/person/1/change/", "auth/group/", "auth/group/add/"]
pages += ["django_celery_beat/periodictask/", "django_celery_beat/periodictask/1/change/"]
print({client.get(f"/admin/{page}").status_code for page in pages})
print(*(type(admin.site.get_model_admin(one)).__module__ for one in (get_user_model(), Group, PeriodicTask)))
"""


FIVE_MINUTES, READY = "Five minutes from an existing Celery project", "In a project of your own"


def blocks(title: str, language: str) -> list[str]:
    """The code of a section of the page."""
    page = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [
        dedent(code) for code in re.findall(rf"^ *```{language}\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    ]


#: Where the page's code runs: from the checkout, or from the wheel in an environment that was empty before.
FORMS = ("checkout",)


@pytest.fixture(params=FORMS)
def place(request: pytest.FixtureRequest, environment: Make) -> Environment:
    return CHECKOUT if request.param == "checkout" else environment("all")


@pytest.fixture
def shop(cluster: Cluster, place: Environment, tmp_path: Path) -> Iterator[Path]:
    """A project as Django and Celery begin one, made ready as the page says, with an empty database."""
    name = "shop_of_somebody"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        folder = tmp_path / "checkout"
        folder.mkdir()
        cluster.root = folder  # `python -m` looks for modules in the directory it is run in
        cluster.env |= place.variables(folder)
        cluster.env |= {"DATABASE_URL": servers.postgres.url_for(name), "DJANGO_SETTINGS_MODULE": "shop.settings"}
        place.run("-m", "django", "startproject", "shop", folder, cwd=folder)
        settings, celery = blocks(READY, "python")
        package = folder / "shop"
        (package / "images").mkdir()
        (package / "images/__init__.py").touch()
        (package / "images/models.py").write_text(MODELS)
        (package / "images/admin.py").write_text(ADMIN)
        (package / "__init__.py").write_text("from shop.celery import app as celery_app\n")
        (package / "celery.py").write_text(CELERY + celery)
        (package / "settings.py").write_text((package / "settings.py").read_text() + SETTINGS + settings)
        (package / "images/tasks.py").write_text(TASKS + blocks(FIVE_MINUTES, "python")[0])
        yield folder
        cluster.end()
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
def test_executions_end_in_a_project_that_follows_the_page(
    shop: Path, cluster: Cluster, place: Environment, redis: Redis
) -> None:
    def run(*words: str) -> str:
        return place.run(*words, cwd=shop, **cluster.env)

    migrate, *commands = blocks(READY, "sh")[0].splitlines()
    run("manage.py", "makemigrations", "images")
    run(*migrate.removeprefix("python ").split())
    run("manage.py", "check", "--fail-level", "WARNING")
    run("manage.py", "makemigrations", "--check")
    members = [
        cluster.start(f"shop-{line.split()[3]}", [str(place.python), "-m", *line.split()]) for line in commands
    ]
    (shop / "program.py").write_text(PROGRAM.replace("BLOCKS", "".join(blocks(FIVE_MINUTES, "python")[1:])))

    said = run("program.py").splitlines()

    assert said == [
        "execution 1 (REPLICATION) Success {'Success': 3}",
        "{200}",
        "shop.images.admin django.contrib.auth.admin django_celery_beat.admin",
    ]
    assert [member.process.poll() for member in members] == [None] * 3
    assert "Traceback" not in cluster.logs()
