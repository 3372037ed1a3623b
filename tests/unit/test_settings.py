"""The settings as a program sees them: a bad value ends it at once, with one line and no traceback."""

import logging
import os
import ssl
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from psycopg import IsolationLevel
from pytest_django import Settings

from harbor_refresh.tasks.broker.connecting import TAKES as BROKER_TAKES
from harbor_refresh.tasks.broker.redis_address import TAKES
from harbor_refresh.tasks.checks.settings import check_settings
from tests.pages import ROOT
from tests.terminal import ran

DATABASE = "postgresql://u:s3cret@127.0.0.1:1/n"
REDIS = "redis://127.0.0.1:1/0"
CHECK = [sys.executable, "manage.py", "check"]
CELERY = [sys.executable, "-m", "celery", "-A", "harbor_refresh", "report"]


def environment(variables: dict[str, str]) -> dict[str, str]:
    """These variables and nothing else of ours. An empty one is not set."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    given = {"DATABASE_URL": DATABASE, "REDIS_URL": REDIS, "PYTHONDONTWRITEBYTECODE": "1"}
    return {name: value for name, value in (kept | given | variables).items() if value}


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(variables)
    return ran(command, env=env)


def settings_of(module: str = "settings.base", **variables: str) -> ModuleType:
    """Return the settings that a program with these variables has. Raises SystemExit for a bad one."""
    with patch.dict(sys.modules), patch.dict(os.environ, environment(variables), clear=True):
        for name in ("settings.base", module):
            sys.modules.pop(name, None)
        try:
            return import_module(module)
        finally:
            logging.captureWarnings(False)


def setting(name: str, **variables: str) -> Any:
    return getattr(settings_of(**variables), name)


def refused(module: str = "settings.base", **variables: str) -> str:
    """Return the one line with which a program with these variables ends."""
    with pytest.raises(SystemExit) as caught:
        settings_of(module, **variables)
    (line,) = str(caught.value).splitlines()
    return line


BAD = {
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": ("soon", "a number from -1"),
    "REFRESH_MAX_ATTEMPTS": ("1.5", "a whole number from 1 to 100"),
    "REFRESH_ATTACH": ("harbour", "one of harbor"),
    "REFRESH_STRATEGY": ("fastest", "one of claim, scan, lock, hash, upstream"),
    "CORE_INSTANCE_ID": ("first", "a whole number from 0 to 9,999"),
    "CORE_INSTANCE_TOTAL": ("0", "a whole number from 1 to 10,000"),
    "LOG_LEVEL": ("LOUD", "one of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
    "REDIS_URL": ("localhost", f"{TAKES}; this has no scheme"),
    "CELERY_BROKER_URL": ("sqs://h", f"{BROKER_TAKES}; this has the scheme sqs"),
    "DATABASE_URL": ("mysql://h/n", "postgresql://user:password@host:port/name"),
}


@pytest.mark.parametrize(("command", "name"), [(CHECK, "REFRESH_MAX_ATTEMPTS"), (CELERY, "DATABASE_URL")])
def test_a_bad_value_ends_the_program_with_exactly_one_line(command: list[str], name: str) -> None:
    got, takes = BAD[name]
    ran = run(command, **{name: got})
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [f"{name}: got {got!r}, takes {takes}. Correct it and start again."]


@pytest.mark.parametrize("name", BAD)
def test_every_kind_of_variable_is_reported_by_its_name(name: str) -> None:
    got, takes = BAD[name]
    assert refused(**{name: got}).startswith(f"{name}: got {got!r}, takes {takes}")


@pytest.mark.parametrize(
    ("broker", "strategy", "expected"),
    [
        ("redis://h/0", "claim", []),
        ("sentinel://h", "scan", []),
        ("amqp://h", "claim", []),
        ("amqp://h;amqp://i", "hash", ["harbor_tasks.E008"]),
        ("amqps://h", "scan", ["harbor_tasks.E008"]),
    ],
)
def test_an_older_design_is_refused_with_rabbitmq(
    broker: str, strategy: str, expected: list[str], settings: Settings
) -> None:
    settings.CELERY_BROKER_URL, settings.REFRESH_STRATEGY = broker, strategy
    assert [message.id for message in check_settings()] == expected


def test_an_attached_service_that_would_take_no_marks_is_refused() -> None:
    attached = {"REFRESH_ATTACH": "harbor"}
    assert run(CHECK, **attached).stderr == ""
    assert "harbor_tasks.E004" in run(CHECK, **attached, REFRESH_STRATEGY="scan").stderr


def test_a_variable_that_no_setting_reads_is_named_at_the_start_and_stops_no_program() -> None:
    given = {"REFRESH_CHUNK": "7", "MAX_DANGLING_HOURS": "1", "REFRESH_HARBOR_SECRET_FILE": str(ROOT / "LICENSE")}
    ran = run([sys.executable, "-c", "from harbor_refresh import wsgi"], **given)
    assert ran.returncode == 0
    said = "WARNING harbor_refresh: At the start: harbor_tasks.W002: "
    assert [name for name in given if f"{said}{name} is no setting" in ran.stderr] == [
        "REFRESH_CHUNK",
        "MAX_DANGLING_HOURS",
    ]


def test_the_strategy_is_claim_unless_told_otherwise_and_an_instance_has_no_default() -> None:
    def wanted(**given: str) -> tuple[object, ...]:
        its = settings_of(**given)
        return its.REFRESH_STRATEGY, its.CORE_INSTANCE_ID, its.CORE_INSTANCE_TOTAL

    assert wanted() == ("claim", None, None)
    given = {"REFRESH_STRATEGY": "Hash", "CORE_INSTANCE_ID": "0", "CORE_INSTANCE_TOTAL": "3"}
    assert wanted(**given) == ("hash", 0, 3)


def test_only_a_worker_asks_for_the_number_of_an_instance() -> None:
    ran = run(CHECK, REFRESH_STRATEGY="hash")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_worker_without_a_possible_number_ends_with_one_line() -> None:
    """tests/integration/strategies/test_hash.py has what each number is refused for."""
    worker = [sys.executable, "-m", "celery", "-A", "harbor_refresh", "worker", "-c", "1"]
    done = run(worker, REFRESH_STRATEGY="hash", CORE_INSTANCE_TOTAL="3", CORE_INSTANCE_ID="3")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("CORE_INSTANCE_ID: got '3', takes a whole number ")


# addresses


def test_redis_is_taken_from_harbors_own_variable_too() -> None:
    harbors = "redis://:p@harbor:6379/2"
    assert setting("REDIS_URL", REDIS_URL="", _REDIS_URL_CORE=harbors) == harbors
    assert setting("REDIS_URL", _REDIS_URL_CORE=harbors) == REDIS
    # its cache may have a database of its own, and its marks are there
    of_the_cache = {"REDIS_URL": "", "_REDIS_URL_CORE": REDIS, "_REDIS_URL_HARBOR": harbors}
    assert setting("REDIS_URL", **of_the_cache) == harbors


def test_an_attached_service_looks_for_tables_in_its_own_schema_and_then_in_harbors() -> None:
    def options(its: ModuleType) -> str:
        return str(its.DATABASES["default"]["OPTIONS"].get("options", ""))

    assert "-c search_path=harbor_refresh,public" in options(settings_of(REFRESH_ATTACH="harbor"))
    assert "search_path" not in options(settings_of())
    # PgBouncer takes no options; the doctor says what to give to the role
    pooled = settings_of(REFRESH_ATTACH="harbor", DATABASE_POOLED="1")
    assert options(pooled) == ""
    assert "search_path" in str(pooled.SESSION_OPTIONS)


def test_rabbitmq_is_the_broker_by_its_address_alone() -> None:
    its = settings_of(CELERY_BROKER_URL="amqps://u:p@h?ssl_cert_reqs=none", LOG_LEVEL="INFO")
    assert (its.CELERY_BROKER_URL, its.REDIS_URL) == ("amqps://u:p@h:5671/%2F", REDIS)
    assert its.CELERY_BROKER_USE_SSL == {"cert_reqs": ssl.CERT_NONE}
    assert "confirm_publish" in its.CELERY_BROKER_TRANSPORT_OPTIONS
    assert "visibility_timeout" not in its.CELERY_BROKER_TRANSPORT_OPTIONS


def test_options_in_the_database_url_reach_the_server_beside_ours() -> None:
    url = f"{DATABASE}?sslmode=require&application_name=refresh"
    options = setting("DATABASES", DATABASE_URL=url)["default"]["OPTIONS"]
    assert (options["sslmode"], options["isolation_level"]) == ("require", IsolationLevel.READ_COMMITTED)
    assert "-c lock_timeout=5s -c idle_in_transaction_session_timeout=20s" in options["options"]


def test_the_settings_that_the_environment_names_are_remembered() -> None:
    assert list(setting("SET_IN_ENVIRONMENT")) == []
    assert list(setting("SET_IN_ENVIRONMENT", REFRESH_JOB_HOURS="5")) == ["REFRESH_JOB_HOURS"]


# production


IN_PRODUCTION = "settings.production"
PRODUCTION = {
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ALLOWED_HOSTS": "refresh.example",
}


def test_production_with_all_variables_gives_no_message() -> None:
    ran = run([*CHECK, "--deploy", "--fail-level", "WARNING"], **PRODUCTION, DJANGO_SETTINGS_MODULE=IN_PRODUCTION)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL"])
def test_production_without_one_of_its_secrets_says_which_in_one_line(name: str) -> None:
    assert refused(IN_PRODUCTION, **(PRODUCTION | {name: ""})).startswith(f"{name}: got nothing, takes ")


def test_production_accepts_harbors_own_redis_variable_and_secrets_in_files(
    tmp_path: Path,
) -> None:
    files = {}
    for name, content in (("SECRET_KEY", PRODUCTION["SECRET_KEY"]), ("DATABASE_URL", DATABASE)):
        (tmp_path / name).write_text(f"{content}\n")
        files[f"{name}_FILE"] = str(tmp_path / name)
    none = {"SECRET_KEY": "", "DATABASE_URL": "", "REDIS_URL": ""}
    its = settings_of(IN_PRODUCTION, **(PRODUCTION | files | none), _REDIS_URL_CORE=REDIS)
    assert (its.SECRET_KEY, its.DATABASES["default"]["PASSWORD"]) == (PRODUCTION["SECRET_KEY"], "s3cret")
    assert its.REDIS_URL == REDIS


@pytest.mark.parametrize("name", ["SECRET_KEY", "REFRESH_HARBOR_SECRET"])
def test_production_does_not_start_with_a_secret_that_everyone_knows(name: str) -> None:
    line = refused(IN_PRODUCTION, **(PRODUCTION | {name: "not-a-secure-string"}))
    assert line.startswith(f"{name}: got a secret that can be guessed, takes ")
    assert "not-a-secure-string" not in line


ACCESS_LOG = """
import logging, logging.config
from settings import base
logger = logging.getLogger("gunicorn.access")
logger.propagate = False
logger.addHandler(logging.NullHandler())  # that of --access-logfile
logging.config.dictConfig(base.LOGGING)  # as Django does in each worker of gunicorn
print(len(logger.handlers), logger.propagate)
from harbor_refresh.logs.for_gunicorn import logconfig_dict
logging.config.dictConfig(logconfig_dict)
print(len(logger.handlers), logger.propagate)
"""


def test_the_settings_leave_the_logs_of_gunicorn_to_its_options() -> None:
    """Unless our configuration of gunicorn says where they go."""
    told = ran([sys.executable, "-c", ACCESS_LOG], env=os.environ | {"DJANGO_SETTINGS_MODULE": "settings.dev"})
    assert (told.stdout.splitlines(), told.returncode) == (["1 False", "0 True"], 0), told.stderr
