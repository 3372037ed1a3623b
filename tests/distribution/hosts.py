"""A project of somebody else, as `django-admin startproject` makes it, with Celery and with the wheel.

It has modules of its own named `tasks`, `settings` and `executions` at its root, as many projects have.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tests import servers
from tests.distribution.environments import Environment

SETTINGS = """
import os
from importlib.util import find_spec

from shop.settings import *

DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", **DATABASE}}
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    *INSTALLED_APPS,
    *(["django_celery_beat"] if find_spec("django_celery_beat") else []),
    "harbor_refresh.executions",
    "harbor_refresh.tasks",
]
REDIS_URL = CELERY_BROKER_URL = os.environ["HOSTS_REDIS"]
HARBOR_REFRESH = {"REDIS_URL": REDIS_URL}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 300}
if find_spec("django_celery_beat"):
    CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_IMPORTS = ["tasks", "executions"]
"""
CELERY = """
import harbor_refresh
from celery import Celery

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
harbor_refresh.connect(app)
"""
TASKS = """
import os

from celery import shared_task
from harbor_refresh import Handle, TrackedJob


def say(words):
    with open(os.environ["SAID"], "a") as said:
        said.write(words + "\\n")


@shared_task
def send_mail(to):
    say(f"mail to {to}")


@shared_task(base=TrackedJob)
def copy(job: Handle, number):
    say(f"copied {number}")
"""
EXECUTIONS = """
from harbor_refresh import on_execution
from tasks import say


@on_execution("REPLICATION")
def tell(change):
    say(f"{change.vendor_type} is {change.to_status}")
"""


def make(folder: Path, environment: Environment, database: str) -> dict[str, str]:
    """Make the project; return the variables of its programs."""
    folder.mkdir()
    variables = environment.variables(folder) | {
        "DJANGO_SETTINGS_MODULE": "settings",
        "HOSTS_REDIS": servers.redis.url,
        "SAID": str(folder / "said.txt"),
    }
    environment.run("-m", "django", "startproject", "shop", folder, cwd=folder)
    files = {
        "settings.py": SETTINGS.replace("DATABASE}", f"{connection_to(database)}}}"),
        "shop/celery.py": CELERY,
        "shop/__init__.py": "from shop.celery import app as celery_app\n",
        "tasks.py": TASKS,
        "executions.py": EXECUTIONS,
        "said.txt": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return variables


def connection_to(database: str) -> Mapping[str, str]:
    url = urlsplit(servers.postgres.url_for(database))
    found = {"NAME": url.path[1:], "USER": url.username, "HOST": url.hostname, "PORT": str(url.port)}
    return {name: value for name, value in found.items() if value}
