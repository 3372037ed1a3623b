"""docs/howto: the commands that an operator copies do what the pages say."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from harbor_refresh.executions.api.access import Scope
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.local.postgres import find_postgres
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from tests import pages, servers, terminal
from tests.integration.command_output import failing, said
from tests.integration.executions.api.api_client import token
from tests.integration.redis_state import Redis
from tests.integration.sample_executions import drifted, made, status_of
from tests.integration.service.web_server import web_server
from tests.started import start

UPGRADE, ALERTS = pages.read("docs/howto/upgrade.md"), pages.read("docs/howto/alerts.md")
TROUBLE = pages.read("docs/howto/troubleshooting.md")
#: Their few commands need no server of their own.
SMALL = [pages.read("docs/howto/retention.md"), pages.read("docs/howto/admin.md")]
#: What is wrong here: no worker and no beat is there.
WRONG = {"beat.alive", "workers.alive"}
SILENT = r"no worker of \S+ has answered|Beat has never sent anything"


def url() -> str:
    return servers.postgres.url_for(connection.settings_dict["NAME"])


def environment() -> dict[str, str]:
    programs = find_postgres()
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "DATABASE_URL": url()}


def run_shell(line: str, folder: Path, **more: str) -> str:
    """Run it as an operator does, with the programs of the test's PostgreSQL."""
    return terminal.typed(line, folder, environment() | more)


def run(line: str, redis: Redis) -> None:
    """Run a line of a page in this process. A command that is misused, or does not exist, fails the test."""
    words = shlex.split(line, comments=True)
    if words[0] == "psql":
        assert words[1:3] == ["$DATABASE_URL", "-c"], line
        with connection.cursor() as cursor:
            cursor.execute(words[3])
    elif words[0] == "redis-cli":
        assert words[1:3] == ["-u", "$REDIS_URL"], line
        redis.execute_command(*words[3:])
    else:
        assert words[:2] == ["python", "manage.py"], line
        if words[2] == "doctor":
            checks = json.loads(failing(*words[2:], "--json")[0])["checks"]
            assert {
                one["check"] for one in checks for each in one["problems"] if each["level"] == "error"
            } == WRONG
        elif words[2] == "alive":
            assert re.match(SILENT, failing(*words[2:])[1])
        else:
            said(*words[2:])


def with_examples(line: str, execution: Execution | None = None, task: int = 0) -> str:
    """Put values into the places of a line that a person fills."""
    values = {"ID": str(execution.pk if execution else 1), "TASK": str(task), "NAME": "runner", "X": "TEST"}
    return re.sub(r"(?<= )(?:ID|TASK|NAME|X)\b", lambda found: values[found[0]], line)


def all_at_once(lines: list[str]) -> str:
    """One line with the checks of all, because each examination waits for workers that are not there."""
    known = ("python", "manage.py", "doctor", "--only")
    checks = [word for line in lines for word in line.split() if word not in known]
    return " ".join(["python manage.py doctor", *(f"--only {one}" for one in dict.fromkeys(checks))])


@pytest.mark.usefixtures("database")
def test_each_command_of_the_alerts_and_of_troubleshooting_works(redis: Redis) -> None:
    """Those within a sentence are typed by test_every_command.py."""
    execution = start("TEST", [[NewJob("a.job", job_id="a")]])
    task = execution.tasks.get().pk
    lines = [line for text in (ALERTS, TROUBLE) for line in pages.lines(text)]
    examined = [line for line in lines if line.startswith("python manage.py doctor")]
    assert len(examined) >= 8
    # the two tests below, and tests/hosts/test_refresh_queue_check.py
    others = ("curl", "journalctl", "python manage.py harbor check")
    elsewhere = [line for line in lines if line.startswith(others)]
    for line in dict.fromkeys(one for one in lines if one not in (*examined, *elsewhere)):
        run(with_examples(line, execution, task), redis)
    run(all_at_once(examined), redis)


@pytest.mark.usefixtures("database")
def test_each_command_of_the_small_pages_works(redis: Redis) -> None:
    lines = [line for text in SMALL for line in pages.lines(text)]
    assert len(lines) == 3
    for line in lines:
        run(with_examples(line), redis)


@pytest.mark.usefixtures("redis")
def test_the_web_process_answers_as_the_alerts_ask_it(database: str, tmp_path: Path) -> None:
    assert shutil.which("curl"), "the page asks with curl"
    asked = [line for line in pages.lines(ALERTS) if line.startswith("curl")]
    assert len(asked) == 2
    with web_server() as url:
        given = {"TOKEN": token(Scope.READ), "HARBOR_REFRESH_URL": url, "no_proxy": "*"}
        for line in asked:
            done = run_shell(line, tmp_path, **given)
            assert done.startswith("HTTP/1.1 200 OK"), done


@pytest.mark.usefixtures("database")
def test_the_statement_of_the_alerts_ends_a_transaction_that_is_open() -> None:
    (statement,) = (one for one in pages.spans(ALERTS) if one.startswith("SELECT "))
    with psycopg.connect(url()) as left_open, psycopg.connect(url(), autocommit=True) as operator:
        left_open.execute("SELECT count(*) FROM execution")
        operator.execute(statement.replace("(pid)", f"({left_open.info.backend_pid})").encode())
        with pytest.raises(psycopg.OperationalError):
            left_open.execute("SELECT 1")


@pytest.mark.usefixtures("database")
def test_the_commands_of_upgrade_and_rollback_work(redis: Redis, tmp_path: Path, settings: Any) -> None:
    """All but those that need the settings of production or a cluster."""
    settings.STATIC_ROOT = tmp_path
    texts = [pages.section(UPGRADE, title) for title in ("Upgrade", "Roll back")]
    lines = [line for text in texts for line in (*pages.lines(text), *pages.spans(text))]
    lines = [line for line in lines if line.startswith("python manage.py ")]
    assert len(lines) > 8
    for line in dict.fromkeys(lines):
        if not any(one in line for one in ("--deploy", "doctor")):
            run(line, redis)
        if "migrate harbor_executions" in line:
            said("migrate")  # the way back from the way back
    assert (tmp_path / "admin").is_dir()


@pytest.mark.usefixtures("database")
def test_the_advice_for_autovacuum_is_a_statement_that_both_tables_take() -> None:
    (advice,) = (
        one for one in pages.spans(pages.section(TROUBLE, "Tables grow")) if one.startswith("ALTER TABLE")
    )
    with connection.cursor() as cursor:
        for table in ("task", "execution"):
            cursor.execute(advice.replace(" task ", f" {table} "))
        cursor.execute("SELECT relname FROM pg_class WHERE array_to_string(reloptions, ' ') LIKE '%=0.02%'")
        assert {name for (name,) in cursor.fetchall()} == {"task", "execution"}


@pytest.mark.usefixtures("database")
def test_a_backup_is_restored_as_the_page_says(redis: Redis, tmp_path: Path) -> None:
    """What was created after the backup is gone, its ids are given to no other row, and a status that is wrong is
    found, also one that is older than the watermark in the backup: only `--full` sees that.

    The broker is another database of that Redis. The line for a RabbitMQ is run in test_rabbitmq.py, and `doctor`
    by the test of the alerts."""
    (backup,) = pages.lines(pages.section(UPGRADE, "Back up"))
    restore = [
        line
        for line in pages.lines(pages.section(UPGRADE, "Restore"))
        if not line.endswith(("doctor", "purge --force")) and not line.startswith("docker")
    ]
    kept = made(2)[0]
    said("harbor", "repair", "drift")
    wrong = drifted()
    run_shell(backup, tmp_path)
    lost, lost_tasks = made(3)
    redis.sadd("cache:execution:refresh:queue:v2", f"{lost.pk}:TEST")
    address = servers.redis.url_for(1)
    broker = Redis.from_url(address)
    broker.rpush("harbor_refresh", "a message")

    before = connection.settings_dict["NAME"]
    emptied = f"{before}_restored"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {emptied}".encode())
        connection.close()
        connections["default"].settings_dict["NAME"] = emptied
        try:
            for line in restore:
                if line.startswith("python"):
                    run(line, redis)
                else:
                    run_shell(line, tmp_path, REDIS_URL=servers.redis.url, CELERY_BROKER_URL=address)
            assert broker.dbsize() == 0
            assert set(Execution.objects.values_list("pk", flat=True)) == {kept.pk, wrong.pk}
            assert redis.smembers("cache:execution:refresh:queue:v2") == {f"{wrong.pk}:TEST".encode()}
            new, new_tasks = made(1)
            assert new.pk > lost.pk
            assert min(new_tasks) > max(lost_tasks)
            assert not Task.objects.filter(pk__in=lost_tasks).exists()
            assert status_of(wrong) == "Running"  # until a worker takes the mark
        finally:
            broker.close()
            connection.close()
            connections["default"].settings_dict["NAME"] = before
            server.execute(f"DROP DATABASE {emptied} WITH (FORCE)".encode())
