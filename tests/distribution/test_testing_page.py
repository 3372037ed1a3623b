"""docs/testing.md, followed word for word in a project that knows nothing of ours, without Redis: with the
checkout on its path, and with the wheel in an environment that was empty."""

from pathlib import Path

import psycopg
import pytest

from tests import pages, servers
from tests.distribution.environments import CHECKOUT, Environment
from tests.distribution.hosts import connection_to
from tests.distribution.metadata import pinned

SETTINGS = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", **{database!r}}}}}
INSTALLED_APPS += ["shop", *{apps!r}]
CELERY_BROKER_URL = "amqp://nothing.listens.here:1//"
"""
CELERY = """
import os

import harbor_refresh
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
harbor_refresh.connect(app)
"""
#: The names of the two apps.
APPS = {
    "checkout": ["executions", "tasks"],
    "wheel": ["harbor_refresh.executions", "harbor_refresh.tasks"],
}
#: What a project has that follows the page.
TOOLS = tuple(str(one) for one in pinned("requirements-dev.txt") if one.name in ("pytest", "pytest-django"))


@pytest.fixture
def installed(form: str, request: pytest.FixtureRequest) -> Environment:
    """The wheel is built only for the variant that needs it."""
    if form == "checkout":
        return CHECKOUT
    made: Environment = request.getfixturevalue("environment")("", also=TOOLS)
    return made


def followed(folder: Path) -> list[str]:
    """Write the files of the page; return its commands."""
    page = pages.read("docs/testing.md")
    for name, code in pages.files(page).items():
        (folder / name).write_text(code, encoding="utf-8")
    return pages.lines(page)


@pytest.mark.slow
@pytest.mark.parametrize("form", APPS)
def test_the_page_is_followed_word_for_word(
    form: str, installed: Environment, template: str, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    installed.run("-m", "django", "startproject", "shop", folder, cwd=folder)
    with (folder / "shop/settings.py").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS.format(database=connection_to("testing_page"), apps=APPS[form]))
    (folder / "shop/celery.py").write_text(CELERY, encoding="utf-8")
    (folder / "shop/__init__.py").write_text("from shop.celery import app as celery_app\n", encoding="utf-8")
    commands = followed(folder)
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute("CREATE DATABASE testing_page")
        try:
            of_django, of_pytest = (installed.run(*words(one), cwd=folder) for one in commands)
        finally:
            server.execute("DROP DATABASE testing_page WITH (FORCE)")

    assert "System check identified no issues" in of_django
    assert "4 passed" in of_pytest


def words(command: str) -> list[str]:
    """The words after the Python of the project."""
    program, *rest = command.split()
    return rest if program == "python" else ["-m", program, "-p", "no:cacheprovider", *rest]
