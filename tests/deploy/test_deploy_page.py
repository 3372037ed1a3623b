"""docs/howto/deploy.md and upgrade.md: their commands for containers run as far as they can without an engine and
a cluster."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
import yaml
from django.core.management import execute_from_command_line
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from harbor_refresh.local.postgres import find_postgres
from tests import pages, servers
from tests.deploy.dockerfile import ROOT
from tests.deploy.manifests import built, kubectl, pods
from tests.integration.sample_executions import drifted, made

PAGE, UPGRADE = pages.read("docs/howto/deploy.md"), pages.read("docs/howto/upgrade.md")
COMMANDS = [
    words
    for title in ("Build the image", "Compose", "Kubernetes")
    for line in pages.lines(pages.section(PAGE, title))
    if (words := shlex.split(line, comments=True))
]
#: They need an engine or a cluster, which the machines of the tests do not have. The page says so.
NEED_AN_ENGINE = [["docker", "build"], ["docker", "compose"]]
NEED_A_CLUSTER = [["kubectl", "apply"]]
NEED_A_CLUSTER += [
    ["kubectl", "-n", "harbor-refresh", verb] for verb in ("wait", "delete", "rollout", "exec", "port-forward")
]
#: How a program of Compose's PostgreSQL is called.
IN_POSTGRES = "docker compose exec -T postgres "


def begins(words: list[str], prefixes: list[list[str]]) -> bool:
    return any(words[: len(prefix)] == prefix for prefix in prefixes)


def test_every_command_runs_or_needs_what_is_not_here(tmp_path: Path) -> None:
    for name in ("deploy/compose", "deploy/kubernetes"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    secrets, again, namespace, secret = (
        words for words in COMMANDS if not begins(words, [*NEED_AN_ENGINE, *NEED_A_CLUSTER])
    )
    home = tmp_path / "copy"
    assert subprocess.run(secrets, cwd=home, check=False, capture_output=True).returncode == 0
    shutil.rmtree(home / ".secrets")
    assert subprocess.run(again, cwd=home, check=False, capture_output=True).returncode == 0
    made = yaml.safe_load(kubectl(*namespace[1:], "--dry-run=client", "--output=yaml", folder=home))
    assert (made["kind"], made["metadata"]["name"]) == ("Namespace", "harbor-refresh")
    assert secret[-5:] == ["|", "kubectl", "apply", "-f", "-"]
    made = yaml.safe_load(kubectl(*secret[1:-5], folder=home))
    assert set(made["data"]) == {"database_url", "redis_url", "secret_key", "redis_password"}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("harbor-refresh", "harbor-refresh")


def test_each_command_of_manage_on_the_page_is_one() -> None:
    """Those that need an engine, too: they are looked up here and not run."""
    for verb in re.findall(r"(?:web|worker) manage ((?:[a-z]+ ?)+)", PAGE + UPGRADE):
        with pytest.raises(SystemExit) as ended:
            execute_from_command_line(["manage.py", *verb.split(), "--help"])
        assert ended.value.code == 0, verb


def test_what_the_page_names_in_a_cluster_is_there() -> None:
    of_page = set(re.findall(r"\b((?:deployment|job)/\w+)", PAGE + UPGRADE))
    there = {f"{each['kind']}/{each['metadata']['name']}".lower() for each in built("base")}
    assert len(of_page) > 4
    assert of_page - there == set()
    (restarted,) = (words[5:] for words in COMMANDS if words[3:5] == ["rollout", "restart"])
    deployments = {each["metadata"]["name"] for each in built("base") if each["kind"] == "Deployment"}
    assert set(restarted) == {f"deployment/{name}" for name in deployments}, (
        "a program with the old secret is left"
    )


def test_the_image_that_the_page_builds_is_that_of_the_base() -> None:
    (build,) = (words for words in COMMANDS if words[:2] == ["docker", "build"])
    images = {each["image"] for pod in pods("base").values() for each in pod["spec"]["containers"]}
    assert images == {build[build.index("--tag") + 1]}


def test_a_backup_of_compose_is_restored_as_the_page_says(database: str, tmp_path: Path) -> None:
    """The lines of its PostgreSQL, whose role is a superuser as in its image; the others need an engine."""
    server = servers.postgres.url_for("postgres")
    kept, wrong = made(2)[0], drifted()
    connection.close()
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute("CREATE ROLE refresh LOGIN SUPERUSER")
        administrator.execute(f"CREATE DATABASE refresh TEMPLATE {database} OWNER refresh".encode())
    try:
        with psycopg.connect(servers.postgres.url_for("refresh"), autocommit=True) as refresh:
            (backup,) = (one for one in pages.spans(UPGRADE) if one.startswith(f"{IN_POSTGRES}pg_dump"))
            in_postgres(backup, tmp_path)
            refresh.execute("DELETE FROM task")
        restore = [line.strip() for line in pages.lines(UPGRADE) if IN_POSTGRES in line]
        assert len(restore) == 4
        for line in restore:
            in_postgres(line, tmp_path)
        with psycopg.connect(servers.postgres.url_for("refresh")) as refresh:
            assert refresh.execute("SELECT id FROM execution ORDER BY id").fetchall() == [(kept.pk,), (wrong.pk,)]
            (task,) = refresh.execute("SELECT max(id) FROM task").fetchone() or ()
            for table, last in (("execution", wrong.pk), ("task", task)):
                serial = f"SELECT nextval(pg_get_serial_sequence('{table}', 'id'))"
                assert refresh.execute(serial.encode()).fetchone() == (last + 1_000_001,)
    finally:
        with psycopg.connect(server, autocommit=True) as administrator:
            administrator.execute("DROP DATABASE IF EXISTS refresh WITH (FORCE)")
            administrator.execute("DROP ROLE refresh")


def in_postgres(line: str, folder: Path) -> None:
    """Run what a line runs in the container of PostgreSQL."""
    at = conninfo_to_dict(servers.postgres.url)
    environ = {**os.environ, "PGHOST": str(at["host"]), "PGPORT": str(at["port"])}
    environ["PATH"] = f"{find_postgres()}:{os.environ['PATH']}"
    subprocess.run(
        ["/bin/sh", "-c", line.removeprefix(IN_POSTGRES)], cwd=folder, env=environ, check=True, timeout=120
    )
