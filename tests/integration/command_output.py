"""Management commands: what they print, what they fail with, and each as a process."""

import json
import os
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.management import BaseCommand, ManagementUtility, call_command
from django.db import connection

from harbor_refresh.executions.management.output import Failed
from tests import servers
from tests.terminal import ran


def said(*words: object) -> str:
    """What the command prints, without the blanks at the ends of lines."""
    out = StringIO()
    call_command(*_typed(words), stdout=out)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _typed(words: tuple[object, ...]) -> list[Any]:
    """A program beside manage.py is given as its Command."""
    return [one if isinstance(one, BaseCommand) else str(one) for one in words]


def data(*words: object) -> Any:
    return json.loads(said(*words, "--json"))


def failing(*words: object) -> tuple[str, str]:
    """What it printed and what it failed with."""
    out = StringIO()
    with pytest.raises(Failed) as failure:
        call_command(*_typed(words), stdout=out)
    assert failure.value.returncode == 1
    return out.getvalue(), str(failure.value)


def misuse(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `manage.py` says of a misused command line. It ends with 2 and prints nothing else. It is run in this
    process, because a process of its own for each of many misuses takes a second each and proves no more."""
    with pytest.raises(SystemExit) as end:
        ManagementUtility(["manage.py", *words]).execute()
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    return err


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own, on this test's database."""
    url = servers.postgres.url_for(connection.settings_dict["NAME"])
    return ran(
        [sys.executable, "manage.py", *words],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": url,
            **environment,
        },
    )
