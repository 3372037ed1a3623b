"""docs/howto/remove.md: its commands leave nothing of ours in a project, and everything of the project."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from harbor_refresh.tasks.pipeline.schedule import ROWS
from tests import pages, servers, terminal
from tests.hosts.host import Host
from tests.hosts.test_a_celery_app_is_joined import JOINED
from tests.programs import needs

TABLES, CONTENT_TYPES, BEAT, REDIS, UNINSTALL = pages.codes(pages.read("docs/howto/remove.md"), "sh")
APPS = ("django.contrib.admin", "django_celery_beat")
OURS = ("cache:execution:refresh:cursor", "harbor_refresh.ticks", "harbor_refresh\x06\x163")
BINDINGS = ("_kombu.binding.harbor_refresh.ticks", "_kombu.binding_permanent.harbor_refresh")
THEIRS = ("shop.default", "cache:shop", "_kombu.binding.shop.default")
LEFT = """
    from django.contrib.auth.models import Permission
    from django.contrib.contenttypes.models import ContentType
    from django.db import connection
    from django_celery_beat.models import PeriodicTask

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
        functions = cursor.fetchone()
    print(json.dumps([
        sorted(connection.introspection.table_names()), functions,
        sorted(ContentType.objects.values_list("app_label", "model")),
        sorted(Permission.objects.values_list("codename", flat=True)),
        sorted(PeriodicTask.objects.values_list("name", flat=True)),
    ]))
"""
STARTS = """
    from django_celery_beat.models import IntervalSchedule, PeriodicTask
    from harbor_refresh.executions.lifecycle.creation import NewExecution
    from harbor_refresh.tasks.jobs.starting.declarations import NewJob
    from harbor_refresh.tasks.jobs.starting.job_rows import start_or_find

    every, _ = IntervalSchedule.objects.get_or_create(every=30, period="seconds")
    PeriodicTask.objects.create(name="shop", task="tasks.of_the_shop", interval=every)
    print(start_or_find(NewExecution("SCAN"), [[NewJob("a.job")]])[0].pk)
"""


@pytest.fixture
def empty_database() -> Iterator[str]:
    name = "host_that_is_left"
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield name
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
def test_the_commands_of_the_page_leave_nothing_of_ours(empty_database: str, redis: Redis, tmp_path: Path) -> None:
    needs("redis-cli")
    (tmp_path / "python").write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -m django "$@"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)

    def project(*, guest: bool) -> Host:
        celery = JOINED if guest else ""
        return Host(tmp_path, empty_database, guest=guest, apps=APPS, broker=servers.redis.url, celery=celery)

    def typed(command: str, host: Host) -> None:
        path = f"{tmp_path}:{os.environ['PATH']}"
        terminal.typed(command, tmp_path, host.env | {"PATH": path, "REDIS_URL": servers.redis.url})

    before = project(guest=False)
    typed("python manage.py migrate", before)
    empty = before.ask(LEFT)
    guest = project(guest=True)
    typed("python manage.py migrate", guest)
    guest.ask(STARTS, CELERY_BROKER_URL="")
    assert len(guest.ask(LEFT)[0]) > len(empty[0])
    assert {row.task for row in ROWS} <= {one for one in BEAT.split("'") if one.startswith("tasks.")}
    for key in (*OURS, *BINDINGS, *THEIRS):
        redis.delete(key)
        redis.set(key, 1)

    typed(TABLES, guest)
    after = project(guest=False)
    for command in (CONTENT_TYPES, BEAT, REDIS):
        typed(command, after)

    assert after.ask(LEFT) == [*empty[:4], ["shop"]]
    assert sorted(key.decode() for key in redis.keys("*")) == sorted({*THEIRS, *found_of_kombu(redis)})
    assert UNINSTALL == "pip uninstall harbor-refresh\n"


def found_of_kombu(redis: Redis) -> set[str]:
    """What kombu keeps of the queues of the project."""
    names = {key.decode() for key in redis.keys("_kombu.*")}
    return {name for name in names if "harbor_refresh" not in name}
