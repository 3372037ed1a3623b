"""docs/doctor.md: its commands run as they stand there, and its example is what the command prints."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import pages, servers
from tests.integration.checks.examined import CHECKS
from tests.integration.command_output import failing, manage

pytestmark = pytest.mark.usefixtures("redis")

PAGE = pages.read("docs/doctor.md")
EVERYTHING, ONLY_REDIS, FOR_PROGRAMS, STRICT = pages.lines(PAGE)
EXAMPLE = pages.code(PAGE, "text").splitlines()

Typed = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def typed(database: str, tmp_path: Path) -> Typed:
    """Start a line of the page in a shell, with the environment of the workers."""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "DATABASE_URL": servers.postgres.url_for(database),
    }

    def start(line: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["/bin/sh", "-c", line],
            cwd=pages.ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_each_command_of_the_page_does_what_the_page_says(typed: Typed) -> None:
    """No worker and no beat runs here, so the doctor finds errors; in Redis it finds none."""
    started = {line: typed(line) for line in (EVERYTHING, ONLY_REDIS, FOR_PROGRAMS, STRICT)}
    ended = {line: (*one.communicate(timeout=300), one.returncode) for line, one in started.items()}

    out, err, code = ended[EVERYTHING]
    assert code == 1, err
    assert "\nerror    workers.alive  " in out
    assert re.search(rf"^{len(CHECKS)} checks: \d+ sound, \d+ errors, ", out, re.MULTILINE), out

    out, err, code = ended[ONLY_REDIS]
    names = [check.id for check in CHECKS if check.id.startswith("redis") or check.answers_for]
    assert (out, err, code) == (f"{len(names)} checks: {len(names)} sound.\n", "", 0)

    out, err, code = ended[FOR_PROGRAMS]
    told = json.loads(out)
    assert (told["sound"], code) == (False, 1), err
    assert [one["check"] for one in told["checks"]] == [check.id for check in CHECKS]
    words = set(re.findall(r"`(\w+)`", " ".join(PAGE.split()).partition("Each of `checks` has")[2].split(". ")[0]))
    assert set(told["checks"][0]) | {"level", "what", "todo"} <= words

    _, err, code = ended[STRICT]
    assert code == 1, err
    assert re.search(r"\d+ problems", err)


def test_a_warning_is_a_failure_for_the_last_command_alone(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So says the table. `--only` narrows the examination to the one check that has a warning here."""
    from harbor_refresh.tasks.checks import postgres

    monkeypatch.setattr(postgres, "FULL", 0.0)
    *_, option, level = STRICT.split()
    assert failing("doctor", "--only", "database.connections", option, level)[1] == "1 problem"
    assert "| 0; 1 with `--fail-level warning` |" in PAGE


def test_the_example_of_the_page_is_what_the_command_prints(database: str) -> None:
    """With other names of role and database, and with the rest of the advice, which the example leaves out."""
    options = quote("-c lock_timeout=0 -c idle_in_transaction_session_timeout=20s")
    url = f"{servers.postgres.url_for(database)}?options={options}"
    ran = manage("doctor", "--only", "database.timeouts", DATABASE_URL=url)
    problem, advice, _, summary = ran.stdout.splitlines()
    assert problem == EXAMPLE[0]
    as_in_example = re.sub(r'ROLE "\w+" IN DATABASE "\w+"', 'ROLE "refresh" IN DATABASE "harbor"', advice)
    assert as_in_example.startswith(EXAMPLE[1].removesuffix("…").rstrip()), advice
    assert re.fullmatch(r"\d+ checks: \d+ sound, 1 error\.", summary), ran.stdout
    assert re.fullmatch(r"\d+ checks: \d+ sound, 1 error\.", EXAMPLE[-1])
    assert ran.returncode == 1
