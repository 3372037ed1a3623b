"""The image without an engine: its steps in a bare directory; its programs with its account and a read-only tree,
on real servers, from their start to a clean end."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from pytest_django import DjangoDbBlocker
from redis import Redis

from harbor_refresh.local.ports import choose_port
from tests import servers
from tests.conftest import fresh_database
from tests.deploy.compose import loaded
from tests.deploy.conftest import protect
from tests.deploy.container import Container, Image, has_namespaces
from tests.deploy.dockerfile import ROOT
from tests.faults.conftest import many, statuses, succeed
from tests.terminal import ran
from tests.variants import variants
from tests.waiting import wait_for

HTTPS = {"Host": "localhost", "X-Forwarded-Proto": "https"}
#: What a container may not do, whatever its program tries: every set of rights is empty.
WITHOUT_RIGHTS = {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1}


class Services:
    """The programs of docker-compose.yml, with their variables and secrets, on the servers of the tests."""

    def __init__(self, image: Image, database: str, logs: Path) -> None:
        self.image, self.logs = image, logs
        self.ports = {"WEB_PORT": str(choose_port()), "FLOWER_PORT": str(choose_port())}
        self.described: dict[str, Any] = loaded({})["services"]
        self._write_secrets(database)
        protect(image.tree)
        self.before = list(image.files())

    def _write_secrets(self, database: str) -> None:
        folder = self.image.tree / "run/secrets"
        folder.parent.mkdir()
        done = subprocess.run(
            [ROOT / "deploy/compose/secrets.sh", folder], check=True, capture_output=True, text=True
        )
        assert "redis.conf" in done.stdout
        folder.chmod(0o755)
        for name, url in (("database_url", servers.postgres.url_for(database)), ("redis_url", servers.redis.url)):
            (folder / name).write_text(url)

    def variables(self, service: str) -> dict[str, str]:
        return {**self.described[service]["environment"], **self.ports}

    def start(self, service: str) -> Container:
        command = self.described[service]["command"]
        return self.image.start(command, self.logs / f"{service}.log", **self.variables(service))

    def check(self, container: Container) -> "subprocess.CompletedProcess[str]":
        """Ask as the image's HEALTHCHECK does, which finds out the program itself; without a PID namespace it is
        told."""
        return container.is_well(*([] if has_namespaces() else [container.name]))

    def becomes_well(self, container: Container) -> None:
        wait_for(lambda: self.check(container).returncode == 0, f"{container.name} to be well", log=container.log)

    def get(self, path: str, port: str = "WEB_PORT", **headers: str) -> httpx2.Response:
        url = f"http://127.0.0.1:{self.ports[port]}{path}"
        return httpx2.get(url, headers=headers, trust_env=False, timeout=60)

    def ends(self, container: Container) -> int:
        """End it as an engine does, and return its exit code."""
        container.stop()
        wait_for(lambda: container.process.poll() is not None, f"{container.name} to end", log=container.log)
        code: int = container.process.returncode
        return code

    def unwritten(self) -> None:
        assert list(self.image.files()) == self.before


def rights(process: psutil.Process) -> dict[str, int]:
    lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return {name: int(lines[name], 16) for name in WITHOUT_RIGHTS}


def is_confined(container: Container) -> None:
    if not has_namespaces():
        return
    program = container.program
    assert (program.uids().real, program.gids().real, rights(program)) == (10001, 10001, WITHOUT_RIGHTS)


@pytest.fixture
def services(make_image: Callable[[bool], Image], database: str, redis: Redis, tmp_path: Path) -> Services:
    return Services(make_image(False), database, tmp_path)


def test_the_web_runs_without_rights_in_a_read_only_tree_and_ends_at_sigterm(services: Services) -> None:
    """With the packages of requirements.txt alone."""
    web = services.start("web")
    wait_for(lambda: web.is_well("ready").returncode == 0, "the web to be ready", log=web.log)
    is_confined(web)
    services.becomes_well(web)
    answers: list[tuple[int, str]] = []

    def is_ready() -> bool:
        """On a slow machine a single answer may come too late."""
        answer = services.get("/readyz")
        answers.append((answer.status_code, answer.json()["database"]))
        return answers[-1] == (200, "ok")

    wait_for(is_ready, f"the database to be ready, as {answers} say not", log=web.log)
    assert services.get("/admin/").headers["Location"].startswith("https://"), "production sends people to HTTPS"
    assert services.ends(web) == 0, web.text()
    services.unwritten()
    assert web.complaints() == []


@pytest.mark.slow
def test_the_steps_of_the_image_make_a_service_whose_programs_start_work_and_end(
    make_image: Callable[[bool], Image], redis: Redis, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    """Every step of the Dockerfile and every program of docker-compose.yml, on an empty database."""
    image = make_image(True)
    with fresh_database("template1", django_db_blocker) as database:
        services = Services(image, database, tmp_path)
        try:
            _migrate(services)
            programs = [services.start(name) for name in ("web", "worker", "beat", "flower")]
            for one in programs:
                services.becomes_well(one)
                is_confined(one)
            _pages_have_their_files(services)
            succeed(many(20))
            wait_for(lambda: statuses() == {"Success": 20}, "the refresh", log=programs[1].log)
            assert {one.name: services.ends(one) for one in programs} == dict.fromkeys(
                ("web", "worker", "beat", "flower"), 0
            )
            assert {one.name: one.complaints() for one in programs if one.complaints()} == {}
            services.unwritten()
        finally:
            image.end()


def _migrate(services: Services) -> None:
    """What waits for the migrations begins before them, and ends when they are done."""
    waiting = services.image.start(["migrated"], services.logs / "migrated.log", **services.variables("web"))
    migrate = services.start("migrate")
    wait_for(lambda: migrate.process.poll() is not None, "the migrations", log=migrate.log)
    assert migrate.process.returncode == 0, migrate.text()
    wait_for(lambda: waiting.process.poll() is not None, "the end of the wait", log=waiting.log)
    assert (waiting.process.returncode, waiting.text()) == (0, "")


def _pages_have_their_files(services: Services) -> None:
    """The static files were made with the image, under names that hold their content."""
    page = services.get("/admin/login/", **HTTPS)
    files = re.findall(r'"(/static/[^"]+\.(?:css|js|svg))"', page.text)
    assert page.status_code == 200
    assert len(files) > 3
    assert {services.get(file, **HTTPS).status_code for file in files} == {200}
    assert all(re.search(r"\.[0-9a-f]{12}\.", file) for file in files), files


def started(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run start.sh in the checkout to its end, with the Python of the tests and no variable but these."""
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **variables}
    command = [ROOT / "deploy/image/start.sh", *words]
    return ran(command, env=environ)


@pytest.mark.parametrize("words", [["flour"], []])
def test_a_program_that_the_image_does_not_know_is_refused_with_those_that_it_knows(words: list[str]) -> None:
    refused = started(*words)
    assert refused.returncode == 2
    assert refused.stderr.startswith("usage: start.sh web | worker | beat | flower | migrate | migrated | manage")


@pytest.mark.parametrize("program", variants("web", "worker", "beat", "flower", "migrate"))
def test_without_its_secrets_a_program_says_in_one_line_which_variable_is_wrong(program: str) -> None:
    given = loaded({})["services"][program]["environment"]
    ended = started(program, **given, DJANGO_SETTINGS_MODULE="settings.production")
    assert ended.returncode != 0
    assert "SECRET_KEY_FILE: got '/run/secrets/secret_key', takes the path of a readable file" in ended.stderr
    assert "Traceback" not in ended.stderr
