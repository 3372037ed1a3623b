"""A project that knows nothing of ours, with its own admin, users, broker and variables.

`Host` writes it and runs programs in it. With `guest=False` our apps are not installed, so that two runs tell what
they change.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests import servers
from tests.pages import ROOT
from tests.terminal import ran

GUESTS = ("harbor_refresh.executions", "harbor_refresh.tasks")
#: The project's own variables, of which none is ours to read.
ITS_VARIABLES = {
    "DATABASE_URL": "postgis://shop:secret@db.shop/shop",
    "CELERY_BROKER_URL": "amqp://shop:secret@broker.shop//",
    "REDIS_URL": "unix:///run/redis/shop.sock",
    "LOG_LEVEL": "20",
    "REFRESH_MAX_ATTEMPTS": "ours, but not in this project",
}

SETTINGS = """
SECRET_KEY = "of the shop"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
INSTALLED_APPS = {apps!r}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {{
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        }},
    }}
]
DATABASES = {{"default": {database!r}}}
# of the project, and of another server than ours
REDIS_URL = "unix:///run/redis/shop.sock"
CELERY_BROKER_URL = {broker!r}
CELERY_TASK_ROUTES = {{"shop.*": {{"queue": "shop"}}}}
CELERY_TASK_DEFAULT_QUEUE = "shop.default"
"""
#: Two sites: one that asks for a second factor, which a session has or has not, and a plain one.
SITES = """
from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig


class SecondFactorSite(AdminSite):
    def has_permission(self, request):
        return super().has_permission(request) and request.session.get("second_factor") == "given"


ops = SecondFactorSite(name="ops")
"""
APPS = """
from django.contrib.admin.apps import AdminConfig


class ShopAdminConfig(AdminConfig):
    default_site = "shop.sites.SecondFactorSite"
"""
#: What a project does that lets staff manage users, but not make superusers of them.
PEOPLE = """
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User

admin.site.unregister(User)


@admin.register(User)
class PeopleAdmin(UserAdmin):
    def get_readonly_fields(self, request, obj=None):
        kept = super().get_readonly_fields(request, obj)
        return kept if request.user.is_superuser else (*kept, "is_superuser", "user_permissions", "groups")
"""
URLS = """
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
"""
CELERY = """
from celery import Celery

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
"""

#: What belongs to the project. Of each site: its class, and the class that shows each of its models.
LOOK = """
import json

import django

django.setup()

from celery import current_app
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.apps import apps
from kombu.transport import TRANSPORT_ALIASES

ours = ("harbor_executions", "harbor_tasks")
current_app.loader.import_default_modules()
conf, router = current_app.conf, current_app.amqp.router
print(json.dumps({
    "sites": {
        site.name: {
            "class": f"{type(site).__module__}.{type(site).__name__}",
            "screens": {
                model._meta.label: f"{type(screen).__module__}.{type(screen).__name__}"
                for model, screen in site._registry.items()
                if model._meta.app_label not in ours
            },
        }
        for site in all_sites
    },
    "default_site": type(admin.site._wrapped if hasattr(admin.site, "_wrapped") else admin.site).__name__,
    "index": str(admin.site.index_template),
    "broker": conf.broker_url,
    "transports": TRANSPORT_ALIASES,
    "routes": {name: router.route({}, name)["queue"].name for name in ("shop.pack", "tasks.pack", "pack")},
    "default_queue": conf.task_default_queue,
    "queues": str(conf.task_queues),
    "settings": {
        name: str(getattr(settings, name)) for name in dir(settings)
        if name.isupper() and name != "INSTALLED_APPS"
    },
    "tasks": {
        name: type(task).__module__ for name, task in current_app.tasks.items()
        if name.startswith(("shop.", "celery."))
    },
    "models": {one._meta.label: one.__module__ for one in apps.get_models() if one._meta.app_label not in ours},
}))
"""


class Host:
    def __init__(
        self,
        folder: Path,
        database: str,
        *,
        guest: bool = True,
        apps: Sequence[str] = ("django.contrib.admin",),
        engine: str = "django.db.backends.postgresql",
        broker: str = "",
        settings: str = "",
        urls: str = URLS,
        celery: str = "",
        python: str | Path = sys.executable,
        **files: str,
    ) -> None:
        self.folder, self.python = folder, python
        installed = [
            *apps,
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "django.contrib.staticfiles",
            "shop.people",
            *(GUESTS if guest else ()),
        ]
        connection = {"ENGINE": engine, **_place_of(servers.postgres.url_for(database))}
        written = SETTINGS.format(apps=installed, database=connection, broker=broker or servers.redis.url)
        self._write("__init__.py", "from shop.celery import app as celery_app\n")
        self._write("settings.py", written + dedent(settings))
        self._write("sites.py", SITES)
        self._write("apps.py", APPS)
        self._write("urls.py", dedent(urls))
        self._write("celery.py", CELERY + dedent(celery))
        self._write("people/__init__.py", "")
        self._write("people/admin.py", PEOPLE)
        for name, text in files.items():
            self._write(name.replace("__", "/") + ".py", dedent(text))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @property
    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        path = f"{self.folder}:{ROOT}"
        return kept | ITS_VARIABLES | {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "shop.settings"}

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in (self.env | variables).items() if value}
        return ran([self.python, *words], folder=self.folder, env=env)

    def ask(self, program: str, **variables: str) -> Any:
        """Run a program after Django's setup; its last line of output is JSON, which is returned."""
        done = self.run("-c", "import json, django\ndjango.setup()\n" + dedent(program), **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def _place_of(url: str) -> dict[str, str]:
    login, _, name = url.removeprefix("postgresql://").partition("/")
    user, _, place = login.rpartition("@")
    host, _, port = place.partition(":")
    return {"NAME": name.partition("?")[0], "USER": user.partition(":")[0], "HOST": host, "PORT": port}
