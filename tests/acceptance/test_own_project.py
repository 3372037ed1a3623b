"""docs/jobs.md, followed word for word in a project that knows nothing of ours.

The blocks of code come from the page; what stands here is what such a project has before it reads the page.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest
from redis import Redis

from tests import servers
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


@pytest.fixture
def shop(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A project as Django and Celery begin one, made ready as the page says, with an empty database."""
    name = "shop_of_somebody"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        folder = tmp_path / "checkout"
        folder.mkdir()
        cluster.env |= {
            "DATABASE_URL": servers.postgres.url_for(name),
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "PYTHONPATH": f"{folder}:{ROOT}",
        }
        run(cluster, "-m", "django", "startproject", "shop", str(folder), DJANGO_SETTINGS_MODULE="")
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


def run(cluster: Cluster, *words: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=cluster.env | env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_executions_end_in_a_project_that_follows_the_page(shop: Path, cluster: Cluster, redis: Redis) -> None:
    migrate, *commands = blocks(READY, "sh")[0].splitlines()
    manage, program = str(shop / "manage.py"), shop / "program.py"
    run(cluster, manage, "makemigrations", "images")
    run(cluster, manage, *migrate.removeprefix("python manage.py ").split())
    run(cluster, manage, "check", "--fail-level", "WARNING")
    run(cluster, manage, "makemigrations", "--check")
    members = [
        cluster.start(f"shop-{line.split()[3]}", [sys.executable, "-m", *line.split()]) for line in commands
    ]
    program.write_text(PROGRAM.replace("BLOCKS", "".join(blocks(FIVE_MINUTES, "python")[1:])))

    said = run(cluster, str(program)).splitlines()

    assert said == [
        "execution 1 (REPLICATION) Success {'Success': 3}",
        "{200}",
        "shop.images.admin django.contrib.auth.admin django_celery_beat.admin",
    ]
    assert [member.process.poll() for member in members] == [None] * 3
    assert "Traceback" not in cluster.logs()
