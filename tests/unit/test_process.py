"""Which program a process is, by its words: its statements have the time of that program."""

import sys

import pytest

from settings.base import STATEMENT_TIMEOUTS
from settings.env import kind_of_process


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
