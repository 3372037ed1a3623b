"""docs/howto/deploy.md: the programs that it starts without containers become ready, work and end."""

import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from redis import Redis

from harbor_refresh.local.ports import choose_port
from tests import pages
from tests.deploy.conftest import copy_sources
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import many, statuses, succeed
from tests.waiting import wait_for

SECTION = pages.section(pages.read("docs/howto/deploy.md"), "Run the programs without containers")
BEFORE = "python manage.py migrate && python manage.py collectstatic --noinput"
PROGRAMS = pages.codes(SECTION, "sh")[-1].splitlines()
NAMES = ("web", "worker", "beat", "flower")


@pytest.fixture
def programs(database: str, redis: Redis, tmp_path: Path) -> Iterator[Cluster]:
    """A shell in a copy of the checkout, with what production demands and ports that are free."""
    started = Cluster(database, tmp_path, copy_sources(tmp_path))
    web = str(choose_port())
    started.env = {
        **{name: started.env[name] for name in ("HOME", "DATABASE_URL", "REDIS_URL")},
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "DJANGO_SETTINGS_MODULE": "settings.production",
        "SECRET_KEY": secrets.token_urlsafe(48),
        "ALLOWED_HOSTS": "localhost",
        "WEB_PORT": web,
        "GUNICORN_CMD_ARGS": f"--bind=127.0.0.1:{web}",
        "FLOWER_PORT": str(choose_port()),
    }
    yield started
    started.end()


def typed(programs: Cluster, name: str, line: str) -> Member:
    return programs.start(name, ["/bin/sh", "-ec", line])


def answers(programs: Cluster, port: str, path: str) -> int | None:
    with suppress(httpx2.HTTPError):
        return httpx2.get(f"http://localhost:{programs.env[port]}{path}", trust_env=False, timeout=60).status_code
    return None


def ends(member: Member) -> int:
    """End it as a service manager does, and return its exit code."""
    os.kill(member.process.pid, signal.SIGTERM)
    wait_for(member.died, "it to end", log=member.log)
    code: int = member.process.returncode
    return code


@pytest.mark.slow
def test_the_programs_of_the_page_become_well_work_and_end(programs: Cluster) -> None:
    before = typed(programs, "before", BEFORE)
    wait_for(before.died, "the migrations and the static files", log=before.log)
    assert before.process.returncode == 0, before.text()
    started = {name: typed(programs, name, f"exec {line}") for name, line in zip(NAMES, PROGRAMS, strict=True)}
    web, worker, _, flower = started.values()
    wait_for(lambda: answers(programs, "WEB_PORT", "/readyz") == 200, "the web to be ready", log=web.log)
    wait_for(lambda: " ready." in worker.text(), "the worker to be ready", log=worker.log)
    wait_for(lambda: answers(programs, "FLOWER_PORT", "/") == 302, "Flower to ask for a login", log=flower.log)
    alive = typed(programs, "alive", "python manage.py alive beat")
    wait_for(alive.died, "an answer", log=alive.log)
    assert alive.process.returncode == 0, alive.text()
    succeed(many(20))
    wait_for(lambda: statuses() == {"Success": 20}, "the refresh", log=worker.log)
    assert {name: ends(one) for name, one in started.items()} == dict.fromkeys(NAMES, 0), programs.logs()
