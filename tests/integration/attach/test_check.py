"""`manage.py attach check`: what it finds on a Harbor before and after the first migration."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker, Settings
from redis import Redis

from harbor_refresh.executions.attached.attachment import HARBOR
from harbor_refresh.tasks.checks.registry import Shown, selection
from tests import servers
from tests.harbor.databases import connections_attached, make_harbors_database
from tests.harbor.rows import asked
from tests.harbor.samples import everything, execution
from tests.integration.command_output import failing, said


@pytest.fixture
def untouched(settings: Settings, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A database of Harbor's with none of our tables, to which this process is attached during the test."""
    name = "harbor_untouched"
    make_harbors_database(name)
    settings.REFRESH_ATTACH = HARBOR
    with connections_attached(), django_db_blocker.unblock():
        connection.close()
        before, connection.settings_dict["NAME"] = connection.settings_dict["NAME"], name
        yield
        connection.close()
        connection.settings_dict["NAME"] = before
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def problems(answer: Any) -> dict[str, list[str]]:
    return {
        one["check"]: [each["what"] for each in one["problems"]] for one in answer["checks"] if one["problems"]
    }


def test_an_untouched_harbor_is_sound_and_stays_untouched(untouched: None, redis: Redis) -> None:
    execution("Running", None, "Success", "Success")
    redis.sadd("execution:status_outdate", "1:REPLICATION", "2:REPLICATION")
    before = everything()
    told = said("attach", "check")
    checks = len(selection(Shown.ATTACH))
    assert told == f"{checks} checks: {checks} sound."
    assert everything() == before
    assert asked("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('harbor_refresh')") == [(0,)]


def test_what_is_missing_is_named(untouched: None, redis: Redis) -> None:
    asked("ALTER TABLE task DROP COLUMN status_revision")
    asked("ALTER TABLE execution DROP COLUMN revision")
    asked("ALTER TABLE task ALTER COLUMN end_time TYPE text")
    out, why = failing("attach", "check")
    names = "execution.revision, task.end_time, task.status_revision"
    assert f"attach.columns  These columns are missing or have another type: {names}." in out
    assert why == "1 problem"


def test_a_key_of_the_set_that_is_no_set_is_an_error(database: str, redis: Redis) -> None:
    redis.set("execution:status_outdate", "x")
    out, _ = failing("attach", "check")
    assert (
        "The key execution:status_outdate is a string and not a set, so this is not Harbor's Redis database."
        in out
    )


def test_without_the_setting_it_says_so(database: str, redis: Redis, settings: Settings) -> None:
    settings.REFRESH_ATTACH = ""
    out, why = failing("attach", "check")
    assert (out, "REFRESH_ATTACH is not set, so no Harbor is attached. Set" in why) == ("", True)
