"""The wheel in another project, which has its own modules named `tasks` and `executions`."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from tests import servers
from tests.distribution import hosts
from tests.distribution.environments import Environment
from tests.distribution.fixtures import Make
from tests.faults.cluster import Cluster
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

JOBS = """
import django

django.setup()
import executions, tasks
from harbor_refresh import start

tasks.send_mail.delay("somebody")
execution = start("REPLICATION", vendor_id=7, jobs=[tasks.copy.s(number) for number in range(5)])
print(execution.wait(timeout=240), execution.progress().counts)
"""
CHECK = """
import django

django.setup()
import tasks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

try:
    call_command("check")
except SystemCheckError as error:
    print(error)
"""


class Host:
    """The project, its environment, and the processes that were started for it."""

    def __init__(self, folder: Path, environment: Environment, database: str, logs: Path) -> None:
        self.folder, self.environment = folder, environment
        self.cluster = Cluster(database, logs, root=folder)
        self.cluster.env = hosts.make(folder, environment, database)

    def manage(self, *words: str) -> str:
        return self.environment.run("manage.py", *words, cwd=self.folder, **self.cluster.env)

    def program(self, text: str) -> str:
        (self.folder / "program.py").write_text(text, encoding="utf-8")
        return self.environment.run("program.py", cwd=self.folder, **self.cluster.env)

    def worker(self, name: str, queues: str) -> None:
        words = ["worker", "-n", f"{name}@%h", "-c", "2", "-Q", queues]
        self.cluster.start(name, [str(self.environment.python), "-m", "celery", "-A", "shop", *words])

    def said(self) -> list[str]:
        return sorted((self.folder / "said.txt").read_text(encoding="utf-8").splitlines())


@pytest.fixture
def empty_database() -> Iterator[str]:
    name = "host_of_the_wheel"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield name
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "packages",
    [("all", "pinned"), ("all", "oldest"), ("all", "newest"), ("admin,flower,http,prometheus", "Django 6.1")],
    ids=["pinned", "oldest", "newest", "Django 6.1"],
)
def test_jobs_run_in_a_project_whose_own_modules_are_named_tasks_settings_and_executions(
    environment: Make, empty_database: str, redis: Redis, tmp_path: Path, packages: tuple[str, str]
) -> None:
    """With the pins, with the first version of each range, with the newest of all, and with the newest Django,
    which takes no django-celery-beat."""
    host = Host(tmp_path / "host", environment(*packages), empty_database, tmp_path)
    try:
        assert "no issues" in host.manage("check")
        host.manage("migrate")
        assert host.manage("makemigrations", "--check", "--dry-run") == "No changes detected\n"
        host.worker("host", "celery")
        host.worker("refresh", "harbor_refresh,harbor_refresh.ticks,harbor_refresh.deliveries")

        assert host.program(JOBS) == "Success {'Success': 5}\n"

        expected = ["REPLICATION is Success", "mail to somebody", *(f"copied {number}" for number in range(5))]
        wait_for(lambda: host.said() == sorted(expected), "all that the project's functions say")
        assert "Traceback" not in host.cluster.logs()
        assert "unregistered" not in host.cluster.logs()

        with (host.folder / "tasks.py").open("a") as module:
            module.write("\n\n@shared_task\ndef sweep():\n    say('swept')\n")
        assert "tasks.sweep is a Celery task with the name tasks.sweep, which" in host.program(CHECK)
    finally:
        host.cluster.end()
