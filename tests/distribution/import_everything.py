"""Import each module of the installed wheel that a project can use; print those that lack a package, and which.

    python import_everything.py '["unfold", "flower"]'

The packages named are hidden, as if they were not installed. The environment has no checkout to import.
"""

import importlib.util
import json
import pkgutil
import sys

import django
from django.conf import settings

import harbor_refresh

#: Only our own service imports these, with its settings.
OF_THE_SERVICE = (
    "admin",
    "celery",
    "logs",
    "management",
    "web.html_pages",
    "web.urls",
    "web.worker",
    "wsgi",
)
HIDDEN = set(json.loads(sys.argv[1]))


class Hides:
    """Finds no module of a hidden package."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hides())


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


apps = {"unfold": "unfold.apps.BasicAppConfig", "django_celery_beat": "django_celery_beat"}
settings.configure(
    SECRET_KEY="for tests only: protects nothing",
    USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}},
    INSTALLED_APPS=[
        "django.contrib.admin.apps.SimpleAdminConfig",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        *(app for name, app in apps.items() if is_there(name)),
        "harbor_refresh.executions",
        "harbor_refresh.tasks",
    ],
)
django.setup()
lacking = {}
for found in pkgutil.walk_packages(harbor_refresh.__path__, "harbor_refresh.", onerror=lambda name: None):
    if found.name.removeprefix("harbor_refresh.").startswith(OF_THE_SERVICE):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as exc:
        lacking[found.name] = str(exc.name).partition(".")[0]
json.dump(lacking, sys.stdout)
