"""docs/reference: the commands of the pages of checks and keys run as they stand there."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests import pages, servers
from tests.integration.checks.examined import CHECKS
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("redis")

EVERYTHING, ONLY_REDIS, FOR_PROGRAMS, STRICT = pages.lines(pages.read("docs/reference/checks.md"))

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

    _, err, code = ended[STRICT]
    assert code == 1, err
    assert re.search(r"\d+ problems", err)


def test_the_three_commands_of_redis_that_are_stable_answer_as_the_page_says(
    queue: ExecutionQueue, redis: Redis
) -> None:
    queue.mark(["1:SCAN_ALL", "2:SCAN_ALL", "3:SCAN_ALL"])
    queue.claim("node-1", 1)
    lines = pages.lines(pages.read("docs/reference/keys.md"), "redis")
    waits, in_flight, (token,) = (redis.execute_command(*re.split(" {2,}", line)[0].split()) for line in lines)
    assert (waits, in_flight) == (2, 1)
    assert re.fullmatch(rb"\d:SCAN_ALL:(waiting@)?node-1:\d{16}", token)
