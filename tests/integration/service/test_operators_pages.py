"""docs/operations.md and docs/alerts.md: the commands that an operator copies do what the pages say."""

import json
import os
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from executions.management.output import Failed
from executions.models import Execution, Task
from harbor_refresh.local.binaries import find_postgres
from tasks.management.commands import refresh_queue
from tests import pages, servers
from tests.integration.command_output import said
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted, made, status_of

OPERATIONS, ALERTS = pages.read("docs/operations.md"), pages.read("docs/alerts.md")
#: Their answer depends on a program that no test starts here: a person, a proxy, the kernel.
NOT_RUN = ("curl", "journalctl", "export")
#: These end with 1 here, because no worker, beat or other account is there.
MAY_FAIL = ("doctor", "alive", "check")


def section(title: str) -> str:
    return pages.section(OPERATIONS, title)


def within_sentences(text: str) -> list[str]:
    return [one for one in pages.spans(text) if one.startswith("python manage.py ")]


def url() -> str:
    return servers.postgres.url_for(connection.settings_dict["NAME"])


def environment() -> dict[str, str]:
    programs = find_postgres()
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "DATABASE_URL": url()}


def run_shell(line: str, folder: Path) -> str:
    """Run it as an operator does, with the programs of the test's PostgreSQL."""
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def run(line: str, redis: Redis) -> None:
    """Run a line of a page in this process. A command that is misused, or does not exist, fails the test."""
    words = shlex.split(line, comments=True)
    if words[0] in NOT_RUN:
        return
    if words[0] == "psql":
        assert words[1:3] == ["$DATABASE_URL", "-c"], line
        with connection.cursor() as cursor:
            cursor.execute(words[3])
    elif words[0] == "redis-cli":
        assert words[1:3] == ["-u", "$REDIS_URL"], line
        redis.execute_command(*words[3:])
    else:
        assert words[:2] == ["python", "manage.py"], line
        if words[2] in MAY_FAIL:
            with suppress(Failed):
                said(*words[2:])
        else:
            said(*words[2:])


def with_examples(line: str) -> str:
    """Put values into the places of a line that a person fills."""
    return line.replace("why ID", "why 1").replace(" NAME ", " runner ")


def all_at_once(lines: list[str]) -> str:
    """One line with the checks of all, because each examination waits for workers that are not there."""
    checks = [
        word for line in lines for word in line.split() if word not in ("python", "manage.py", "doctor", "--only")
    ]
    return " ".join(["python manage.py doctor", *(f"--only {one}" for one in dict.fromkeys(checks))])


@pytest.mark.usefixtures("database")
def test_each_command_of_the_alerts_works(redis: Redis) -> None:
    execution, _ = made(1)
    lines = list(dict.fromkeys([*pages.lines(ALERTS), *within_sentences(ALERTS)]))
    examined = [line for line in lines if line.startswith("python manage.py doctor")]
    assert len(examined) >= 8
    for line in (*(one for one in lines if one not in examined), all_at_once(examined)):
        run(with_examples(line).replace("why 1", f"why {execution.pk}"), redis)


@pytest.mark.usefixtures("database")
def test_the_commands_of_install_and_upgrade_and_rollback_work(
    redis: Redis, tmp_path: Path, settings: Any
) -> None:
    """Not run here: `createsuperuser`, which asks a person; `check --deploy`, which `make lint` runs; `doctor`,
    which the test of the alerts runs; and the way back to the first migration, which no row would survive."""
    settings.STATIC_ROOT = tmp_path
    texts = [section(title) for title in ("Install", "Upgrade", "Roll back")]
    lines = [line for text in texts for line in (*pages.lines(text), *within_sentences(text))]
    assert len(lines) > 15
    for line in dict.fromkeys(lines):
        if any(one in line for one in ("createsuperuser", "harbor_executions 0001", "--deploy", "doctor")):
            continue
        run(with_examples(line), redis)
    assert (tmp_path / "admin").is_dir()


def test_the_statements_of_install_make_a_role_that_can_migrate() -> None:
    """The role and its database have other names here, so that several tests may run at once."""
    name = f"refresh_of_install_{os.getpid()}"
    statements = pages.code(section("Install"), "sql")
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        try:
            for one in statements.replace("refresh", name).split(";")[:-1]:
                server.execute(one.encode())
            address = servers.postgres.url_for(name).replace("postgres@", f"{name}:x@")
            with psycopg.connect(address) as mine:
                row = mine.execute("SELECT current_user, pg_has_role('pg_read_all_stats', 'member')").fetchone()
                assert row == (name, True)
                mine.execute("CREATE TABLE made (id int)")
        finally:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            server.execute(f"DROP ROLE IF EXISTS {name}".encode())


@pytest.mark.usefixtures("database")
def test_a_backup_is_restored_as_the_page_says(redis: Redis, tmp_path: Path) -> None:
    """What was created after the backup is gone, its ids are given to no other row, and every status is right."""
    backup, *restore = [
        line for line in pages.lines(section("Back up and restore")) if not line.startswith("python")
    ]
    kept, wrong = made(2)[0], drifted()
    run_shell(backup, tmp_path)
    lost, lost_tasks = made(3)
    redis.sadd("cache:execution:refresh:queue:v2", f"{lost.pk}:TEST")

    before = connection.settings_dict["NAME"]
    emptied = f"{before}_restored"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {emptied}".encode())
        connection.close()
        connections["default"].settings_dict["NAME"] = emptied
        try:
            for line in restore:
                run_shell(line, tmp_path)
            redis.flushdb()
            said("migrate")
            assert json.loads(said("reconcile", "--full", "--json"))["marked"] == 1
            assert set(Execution.objects.values_list("pk", flat=True)) == {kept.pk, wrong.pk}
            assert redis.smembers("cache:execution:refresh:queue:v2") == {f"{wrong.pk}:TEST".encode()}
            new, new_tasks = made(1)
            assert new.pk > lost.pk
            assert min(new_tasks) > max(lost_tasks)
            assert not Task.objects.filter(pk__in=lost_tasks).exists()
            assert status_of(wrong) == "Running"  # until a worker takes the mark
        finally:
            connection.close()
            connections["default"].settings_dict["NAME"] = before
            server.execute(f"DROP DATABASE {emptied} WITH (FORCE)".encode())


def test_each_verb_that_the_pages_name_exists() -> None:
    named = set(re.findall(r"manage\.py refresh_queue (\S+?)[`\s]", OPERATIONS + ALERTS))
    assert named <= set(refresh_queue.VERBS)
