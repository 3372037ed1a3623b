"""What a process does at its start: it knows by its words which program it is, as its statements have the time of
that program; and it imports the pages of the service only if it serves them.

The URLs import the API, and with it Django Ninja and Pydantic: half the time of a start.
"""

import os
import sys

import pytest

from settings.base import STATEMENT_TIMEOUTS
from settings.env import kind_of_process
from tests.terminal import ran

OF_PAGES = ("ninja", "pydantic", "harbor_refresh.web.api", "harbor_refresh.web.urls")
STARTS = {
    "worker": """
from celery import signals
from harbor_refresh.celery import app
signals.celeryd_init.send(sender="a worker", instance=None, conf=app.conf, options={})
app.loader.import_default_modules()
""",
    "command": """
import django
from django.core.management import load_command_class
django.setup()
command = load_command_class("harbor_refresh.tasks", "harbor")
command.check(tags=command.requires_system_checks)
""",
    "web": "import harbor_refresh.wsgi\n",
}


@pytest.mark.parametrize(("process", "expected"), [("worker", ()), ("command", ()), ("web", OF_PAGES)])
def test_only_web_imports_the_pages(process: str, expected: tuple[str, ...]) -> None:
    program = f"{STARTS[process]}\nimport sys\nprint([name for name in {OF_PAGES} if name in sys.modules])"
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "settings.test"}
    done = ran([sys.executable, "-c", program], env=env)
    assert (done.stderr, done.stdout.strip()) == ("", str(list(expected)))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("/v/celery/__main__.py -A harbor_refresh worker --concurrency 2", "worker"),
        ("/v/bin/celery -A harbor_refresh beat --pidfile=", "beat"),
        ("/v/bin/celery -A harbor_refresh flower --port=1", "command"),
        ("manage.py migrate --noinput", "migrate"),
        ("/opt/celery/app/manage.py harbor stop beat worker", "command"),
        ("manage.py harbor sweep", "command"),
    ],
)
def test_a_program_is_known_by_its_words(words: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("harbor_refresh.wsgi", "harbor_refresh.logs.for_gunicorn"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "argv", words.split())
    assert kind_of_process() == kind
    assert kind in STATEMENT_TIMEOUTS


@pytest.mark.parametrize("module", ["harbor_refresh.wsgi", "harbor_refresh.logs.for_gunicorn"])
def test_the_web_process_is_known_by_its_application(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, sys)
    assert kind_of_process() == "web"
