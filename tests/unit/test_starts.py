"""What a process imports at its start: the pages of the service only if it serves them.

The URLs import the API, and with it Django Ninja and Pydantic: half the time of a start.
"""

import os
import sys

import pytest

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
