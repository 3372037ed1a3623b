"""docker-compose.yml: valid by the schema of its specification, and consistent with the image and the settings."""

import json
import re
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from redis import AuthenticationError, Redis
from redis.exceptions import ConnectionError as NoAnswer

from harbor_refresh.local.ports import choose_port
from harbor_refresh.local.redis import find_redis
from tests import pages
from tests.deploy.compose import COMPOSE, Missing, loaded, replaced
from tests.deploy.container import HEALTH, SERVICE
from tests.deploy.dockerfile import ROOT
from tests.deploy.programs import (
    CHECKS,
    OF_THE_IMAGE,
    known_variables,
    lacks_of_web,
    missing,
    seconds_to_end,
    size_of,
)
from tests.waiting import wait_for

FILE = loaded({})
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
SERVERS = {"postgres", "redis"}
OURS = {name: one for name, one in SERVICES.items() if name not in SERVERS}
EVERY = pytest.mark.parametrize("name", sorted(SERVICES))


def test_it_is_valid_by_the_schema_of_the_compose_specification() -> None:
    schema = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text()
    validator = jsonschema.Draft202012Validator(json.loads(schema))
    as_written = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert [error.message for one in (as_written, FILE) for error in validator.iter_errors(one)] == []
    as_written["services"]["web"]["read-only"] = True
    assert [error.message for error in validator.iter_errors(as_written)], "the schema finds a misspelled word"


@EVERY
def test_a_service_may_write_nothing_but_its_data_and_has_no_rights(name: str) -> None:
    one = SERVICES[name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in [folder.partition(":")[0] for folder in one["tmpfs"]]  # noqa: S108
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode", "container_name"} & set(one)
    assert one.get("user", SERVICE.only("USER").rest) != "0:0"
    volumes = [volume.partition(":")[0] for volume in one.get("volumes", [])]
    assert volumes == ([name] if name in SERVERS else [])
    assert set(volumes) <= set(FILE["volumes"])


@EVERY
def test_a_service_has_limits_a_bounded_log_and_starts_again(name: str) -> None:
    one = SERVICES[name]
    assert set(one["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert set(one["logging"]["options"]) == {"max-size", "max-file"}
    assert one["restart"] == ("no" if name == "migrate" else "unless-stopped")


def test_tmp_holds_the_bodies_that_arrive_at_once_and_fits_into_the_memory_of_each_program() -> None:
    memory = {name: one["deploy"]["resources"]["limits"]["memory"] for name, one in OURS.items()}
    sizes = {name: one["tmpfs"][0].partition("size=")[2] for name, one in OURS.items()}
    assert [name for name in OURS if not sizes[name]] == [], "half of the memory of the machine"
    assert [name for name in OURS if size_of(sizes[name]) >= size_of(memory[name])] == []
    assert lacks_of_web(sizes["web"], memory["web"]) == []


def test_a_program_has_twice_the_time_that_it_takes_to_end() -> None:
    """Web has five seconds more than it takes: gunicorn ends its requests itself. `migrate` has the engine's ten
    seconds: a kill undoes its transaction."""
    needed = {name: 2 * seconds for name, seconds in seconds_to_end().items()}
    needed["web"] = seconds_to_end()["web"] + 5
    needed |= dict.fromkeys(SERVERS, 30)  # they write what is in memory
    grace = {name: one["stop_grace_period"] for name, one in SERVICES.items() if name != "migrate"}
    assert {name for name in grace if int(grace[name].removesuffix("s")) < needed[name]} == set()


@EVERY
def test_an_image_of_others_is_pinned_by_version_and_digest(name: str) -> None:
    if name in SERVERS:
        assert re.fullmatch(r"[\w/]+:\d+\.\d+[.\d]*-\w+@sha256:[0-9a-f]{64}", SERVICES[name]["image"])


@EVERY
def test_a_service_has_a_health_check_that_its_image_knows(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    if name == "migrate":
        assert check == {"disable": True}
    elif name not in SERVERS:
        assert check["test"] == ["CMD", HEALTH, name]
        assert name in CHECKS
    else:
        assert check["test"][0] in ("CMD", "CMD-SHELL")


def test_programs_start_when_the_servers_are_well_and_the_database_is_migrated() -> None:
    healthy, done = {"condition": "service_healthy"}, {"condition": "service_completed_successfully"}
    expected = {name: {"postgres": healthy, "redis": healthy, "migrate": done} for name in OURS}
    assert {name: one["depends_on"] for name, one in OURS.items()} == expected | {"migrate": {"postgres": healthy}}


def test_only_web_and_flower_have_ports_and_only_on_this_machine() -> None:
    assert {name: one["ports"] for name, one in SERVICES.items() if "ports" in one} == {
        "web": [f"127.0.0.1:8000:{OF_THE_IMAGE['WEB_PORT']}"],
        "flower": [f"127.0.0.1:5555:{OF_THE_IMAGE['FLOWER_PORT']}"],
    }
    assert FILE["networks"]["servers"] == {"internal": True}
    assert {name for name, one in SERVICES.items() if "front" in one["networks"]} == {"web", "flower", "worker"}
    assert all("servers" in one["networks"] for one in SERVICES.values())


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_of_a_program_is_known_and_none_is_missing(name: str) -> None:
    given = set(OURS[name]["environment"])
    assert given - known_variables() == set()
    assert missing(given) == []
    for variable, value in OURS[name]["environment"].items():
        if variable.endswith("_FILE"):
            assert value.removeprefix("/run/secrets/") in OURS[name]["secrets"], variable


def test_no_secret_stands_in_the_file_or_in_the_environment(tmp_path: Path) -> None:
    made = tmp_path / "secrets"
    subprocess.run([ROOT / "deploy/compose/secrets.sh", made], check=True, capture_output=True)
    contents = {path.name: path.read_text() for path in made.iterdir()}
    assert set(contents) == set(FILE["secrets"])
    assert {name: one["file"] for name, one in FILE["secrets"].items()} == {n: f".secrets/{n}" for n in contents}
    assert all(set(one.get("secrets", [])) <= set(contents) for one in SERVICES.values())
    password, of_redis = contents["postgres_password"], contents["redis_password"]
    assert contents["database_url"] == f"postgresql://refresh:{password}@postgres:5432/refresh"
    assert contents["redis_url"] == f"redis://:{of_redis}@redis:6379/0"
    assert contents["redis.conf"] == f"requirepass {of_redis}\n"
    assert len({password, of_redis, contents["secret_key"]}) == 3
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for one in (password, of_redis, contents["secret_key"]))
    assert made.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o644}
    again = subprocess.run([ROOT / "deploy/compose/secrets.sh", made], capture_output=True, check=False)
    assert again.returncode != 0
    assert {path.name: path.read_text() for path in made.iterdir()} == contents, "new passwords would lock us out"
    postgres = SERVICES["postgres"]["environment"]
    assert postgres["POSTGRES_PASSWORD_FILE"] == "/run/secrets/postgres_password"
    assert (postgres["POSTGRES_USER"], postgres["POSTGRES_DB"]) == ("refresh", "refresh")


def test_a_variable_of_the_caller_replaces_its_default() -> None:
    given = loaded({"ALLOWED_HOSTS": "status.example", "PUBLISH_WEB": "0.0.0.0:80"})["services"]["web"]
    assert given["environment"]["ALLOWED_HOSTS"] == "status.example"
    assert given["ports"] == ["0.0.0.0:80:8000"]
    with pytest.raises(Missing, match="NOTHING: set it"):
        replaced(["$$", "${NOTHING:?set it}"], {})


def test_a_setting_in_the_file_that_the_page_names_reaches_each_program() -> None:
    """By Compose's precedence: `environment`, with variables replaced from `.env`, before `env_file`."""
    (name,) = re.findall(r"settings to\s`([\w.-]+)`", pages.section(pages.read("docs/howto/deploy.md"), "Compose"))
    settings = {one for each in OURS.values() for one in each["environment"] if not one.endswith("_FILE")}
    given = dict.fromkeys({*settings, "LOG_LEVEL"}, "of the file")
    assert len(given) > 5
    services = loaded(given if name == ".env" else {})["services"]
    for program in OURS:
        files = [file["path"] for file in services[program]["env_file"]]
        seen = (given if name in files else {}) | services[program]["environment"]
        assert {one: seen.get(one) for one in given} == given, program


def test_redis_keeps_a_log_refuses_writes_when_full_and_wants_a_password(tmp_path: Path) -> None:
    """By its command and its health check, with the server of the tests."""
    (tmp_path / "redis.conf").write_text("requirepass right\n")
    (tmp_path / "redis_password").write_text("right")
    port = choose_port()
    command = [word.replace("/run/secrets", str(tmp_path)) for word in SERVICES["redis"]["command"]]
    assert command[0] == "valkey-server"
    words = [str(find_redis()), *command[1:], "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        with Redis(port=port, password="right") as client:
            wait_for(lambda: _answers(client), "the server")
            settings = client.config_get("appendonly", "maxmemory-policy", "maxmemory")
        assert settings == {"appendonly": "yes", "maxmemory-policy": "noeviction", "maxmemory": str(384 * 1024**2)}
        with Redis(port=port) as stranger, pytest.raises(AuthenticationError):
            stranger.ping()
    finally:
        server.kill()
        server.wait()
    (test, line) = SERVICES["redis"]["healthcheck"]["test"]
    assert test == "CMD-SHELL"
    assert "REDISCLI_AUTH=$(cat /run/secrets/redis_password)" in line
    assert shlex.split(line)


def _answers(client: "Redis") -> bool:
    try:
        return bool(client.ping())
    except NoAnswer:
        return False
