"""The settings as a program sees them: a bad value ends it at once, with one line and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harbor_refresh.tasks.broker.connecting import TAKES as BROKER_TAKES
from harbor_refresh.tasks.broker.redis_address import TAKES
from harbor_refresh.tasks.pacing import CHUNK

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "postgresql://u:s3cret@127.0.0.1:1/n"
REDIS = "redis://127.0.0.1:1/0"
CHECK = [sys.executable, "manage.py", "check"]
CELERY = [sys.executable, "-m", "celery", "-A", "harbor_refresh", "report"]


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it with these variables and nothing else of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    given = {"DATABASE_URL": DATABASE, "REDIS_URL": REDIS, "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: value for name, value in (kept | given | variables).items() if value}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def setting(expression: str, **variables: str) -> str:
    """What an expression over Django's settings is."""
    module = variables.get("DJANGO_SETTINGS_MODULE", "settings.base")
    ran = run([sys.executable, "-c", f"import {module} as settings; print({expression})"], **variables)
    assert (ran.stderr, ran.returncode) == ("", 0)
    return ran.stdout.strip()


BAD = {
    "EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": ("soon", "a number from -1"),
    "REFRESH_FANOUT": ("many", "'auto' or a whole number from 1 to 6,000"),
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


@pytest.mark.parametrize("command", [CHECK, CELERY], ids=["manage.py check", "celery report"])
@pytest.mark.parametrize("name", ["REFRESH_MAX_ATTEMPTS", "DATABASE_URL"])
def test_a_bad_value_ends_the_program_with_exactly_one_line(command: list[str], name: str) -> None:
    got, takes = BAD[name]
    ran = run(command, **{name: got})
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [f"{name}: got {got!r}, takes {takes}. Correct it and start again."]


@pytest.mark.parametrize("name", BAD)
def test_every_kind_of_variable_is_reported_by_its_name(name: str) -> None:
    got, takes = BAD[name]
    ran = run([sys.executable, "-c", "import settings.base"], **{name: got})
    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)
    assert ran.stderr.startswith(f"{name}: got {got!r}, takes {takes}")


def test_good_values_give_no_message() -> None:
    ran = run(CHECK)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_attached_service_that_would_take_no_marks_is_refused() -> None:
    attached = {"REFRESH_ATTACH": "harbor"}
    assert run(CHECK, **attached).stderr == ""
    for more in ({"REFRESH_STRATEGY": "scan"}, {"EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS": "0"}):
        assert "harbor_tasks.E004" in run(CHECK, **attached, **more).stderr


def test_an_unusual_prefix_gives_a_warning() -> None:
    ran = run(CHECK, REFRESH_KEY_PREFIX="mine:")
    assert ran.returncode == 0
    assert "harbor_tasks.W001" in ran.stderr


def test_a_subtask_is_at_most_a_whole_chunk() -> None:
    assert setting("settings.REFRESH_FANOUT", REFRESH_FANOUT=f"{CHUNK}") == f"{CHUNK}"
    ran = run([sys.executable, "-c", "import settings.base"], REFRESH_FANOUT=f"{CHUNK + 1}")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)
    assert ran.stderr.startswith(f"REFRESH_FANOUT: got '{CHUNK + 1}', takes {BAD['REFRESH_FANOUT'][1]}")


def test_the_program_decides_the_size_of_subtasks_unless_told_otherwise() -> None:
    assert setting("settings.REFRESH_FANOUT") == "None"


def test_a_variable_that_no_setting_reads_is_named_at_the_start_and_stops_no_program() -> None:
    given = {"REFRESH_CHUNK": "7", "MAX_DANGLING_HOURS": "1", "REFRESH_HARBOR_SECRET_FILE": str(ROOT / "LICENSE")}
    ran = run(CHECK, **given)
    assert ran.returncode == 0
    assert [name for name in given if f"{name} is no setting" in ran.stderr] == [
        "REFRESH_CHUNK",
        "MAX_DANGLING_HOURS",
    ]
    named = run([sys.executable, "-c", "from harbor_refresh import wsgi"], REFRESH_CHUNK="7").stderr
    assert "WARNING harbor_refresh: At the start: harbor_tasks.W002: REFRESH_CHUNK is no setting" in named


def test_the_strategy_is_claim_unless_told_otherwise_and_an_instance_has_no_default() -> None:
    wanted = "(settings.REFRESH_STRATEGY, settings.CORE_INSTANCE_ID, settings.CORE_INSTANCE_TOTAL)"
    assert setting(wanted) == "('claim', None, None)"
    given = {"REFRESH_STRATEGY": "Hash", "CORE_INSTANCE_ID": "0", "CORE_INSTANCE_TOTAL": "3"}
    assert setting(wanted, **given) == "('hash', 0, 3)"


def test_only_a_worker_asks_for_the_number_of_an_instance() -> None:
    ran = run(CHECK, REFRESH_STRATEGY="hash")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "CORE_INSTANCE_TOTAL: got nothing, takes "),
        (
            {"CORE_INSTANCE_TOTAL": "3", "CORE_INSTANCE_ID": "3"},
            "CORE_INSTANCE_ID: got '3', takes a whole number ",
        ),
    ],
)
def test_a_worker_without_a_possible_number_ends_with_one_line(given: dict[str, str], line: str) -> None:
    worker = [sys.executable, "-m", "celery", "-A", "harbor_refresh", "worker", "-c", "1"]
    ran = run(worker, REFRESH_STRATEGY="hash", **given)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)
    assert ran.stderr.startswith(line)


# addresses


def test_redis_is_taken_from_harbors_own_variable_too() -> None:
    harbors = "redis://:p@harbor:6379/2"
    assert setting("settings.REDIS_URL", REDIS_URL="", _REDIS_URL_CORE=harbors) == harbors
    assert setting("settings.REDIS_URL", _REDIS_URL_CORE=harbors) == REDIS
    # its cache may have a database of its own, and its marks are there
    of_the_cache = {"REDIS_URL": "", "_REDIS_URL_CORE": REDIS, "_REDIS_URL_HARBOR": harbors}
    assert setting("settings.REDIS_URL", **of_the_cache) == harbors


def test_an_attached_service_looks_for_tables_in_its_own_schema_and_then_in_harbors() -> None:
    options = "settings.DATABASES['default']['OPTIONS'].get('options', '')"
    path = "-c search_path=harbor_refresh,public"
    assert path in setting(options, REFRESH_ATTACH="harbor")
    assert "search_path" not in setting(options)
    # PgBouncer takes no options; the doctor says what to give to the role
    assert setting(options, REFRESH_ATTACH="harbor", DATABASE_POOLED="1") == ""
    assert "search_path" in setting("settings.SESSION_OPTIONS", REFRESH_ATTACH="harbor", DATABASE_POOLED="1")


def test_the_broker_is_redis_unless_told_otherwise() -> None:
    assert setting("settings.CELERY_BROKER_URL") == REDIS
    other = "redis://other:6379/1"
    assert setting("settings.CELERY_BROKER_URL", CELERY_BROKER_URL=other) == other


def test_rabbitmq_is_the_broker_by_its_address_alone() -> None:
    given = {"CELERY_BROKER_URL": "amqps://u:p@h?ssl_cert_reqs=none", "LOG_LEVEL": "INFO"}
    told = "settings.CELERY_BROKER_URL, settings.CELERY_BROKER_USE_SSL, settings.REDIS_URL"
    assert setting(told, **given) == f"amqps://u:p@h:5671/%2F {{'cert_reqs': <VerifyMode.CERT_NONE: 0>}} {REDIS}"
    options = "sorted(settings.CELERY_BROKER_TRANSPORT_OPTIONS)"
    assert "confirm_publish" in setting(options, **given)
    assert "visibility_timeout" not in setting(options, **given)


def test_options_in_the_database_url_reach_the_server_beside_ours() -> None:
    url = f"{DATABASE}?sslmode=require&application_name=refresh"
    options = setting("settings.DATABASES['default']['OPTIONS']", DATABASE_URL=url)
    assert "'sslmode': 'require'" in options
    assert "READ_COMMITTED" in options
    assert "-c lock_timeout=5s -c idle_in_transaction_session_timeout=20s" in options


def test_the_settings_that_the_environment_names_are_remembered() -> None:
    named = "sorted(settings.SET_IN_ENVIRONMENT)"
    assert setting(named) == "[]"
    assert setting(named, REFRESH_FANOUT="5") == "['REFRESH_FANOUT']"


# production


PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "settings.production",
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ALLOWED_HOSTS": "refresh.example",
}


def test_production_with_all_variables_gives_no_message() -> None:
    ran = run([*CHECK, "--deploy", "--fail-level", "WARNING"], **PRODUCTION)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL"])
def test_production_without_one_of_its_secrets_says_which_in_one_line(name: str) -> None:
    ran = run(CHECK, **(PRODUCTION | {name: ""}))
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith(f"{name}: got nothing, takes ")


def test_production_accepts_harbors_own_redis_variable_and_secrets_in_files(
    tmp_path: Path,
) -> None:
    files = {}
    for name, content in (("SECRET_KEY", PRODUCTION["SECRET_KEY"]), ("DATABASE_URL", DATABASE)):
        (tmp_path / name).write_text(f"{content}\n")
        files[f"{name}_FILE"] = str(tmp_path / name)
    ran = run(
        CHECK,
        **(PRODUCTION | files | {"SECRET_KEY": "", "DATABASE_URL": "", "REDIS_URL": ""}),
        _REDIS_URL_CORE=REDIS,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["SECRET_KEY", "REFRESH_HARBOR_SECRET"])
def test_production_does_not_start_with_a_secret_that_everyone_knows(name: str) -> None:
    ran = run(CHECK, **(PRODUCTION | {name: "not-a-secure-string"}))
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith(f"{name}: got a secret that can be guessed, takes ")
    assert "not-a-secure-string" not in ran.stderr


def test_debug_pages_are_for_developers_only() -> None:
    assert setting("settings.DEBUG", **PRODUCTION) == "False"
    assert setting("settings.DEBUG", DJANGO_SETTINGS_MODULE="settings.dev") == "True"


def test_production_does_not_use_the_key_of_development() -> None:
    base = setting("repr(settings.SECRET_KEY)")
    assert base == "''"
