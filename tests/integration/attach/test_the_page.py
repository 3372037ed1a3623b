"""Every command of docs/attach.md, run as it stands there: step by step, and then the way back."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from redis import Redis

from harbor_refresh.local.binaries import find_postgres
from harbor_refresh.local.redis import EmbeddedRedis
from tests import pages, servers
from tests.faults.cluster import ROOT, Cluster
from tests.harbor.databases import make_harbors_database
from tests.harbor.dump import dump_of_public
from tests.harbor.managed import ADMINISTRATOR, HARBORS_ROLE, managed
from tests.programs import needs
from tests.waiting import wait_for

NAME = "harbor_of_the_page"
RESTORED = f"{NAME}_restored"
#: A shell, sed, an address or a quoted literal may change each of the special characters.
PASSWORD = "a/b&c'd\\e+f=%41"
#: The section behind the steps; the test of an upgrade and a restore runs its blocks.
ASKED = "What is asked most"
DATABASES = ("HARBORS_DATABASE_URL", "DATABASE_URL")
TABLES = "SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'harbor_refresh' ORDER BY tablename"
PAGE = pages.read("docs/attach.md")


def steps() -> dict[str, tuple[list[str], list[str]]]:
    """Each step with its blocks, and with those of its way back."""
    found = {}
    for title, text in re.findall(r"^### (\d\..*?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        forward, way_back, back = text.partition("*Way back:*")
        assert way_back, f"{title} has no way back"
        found[title] = pages.codes(forward, "sh"), pages.codes(back, "sh")
    return found


@pytest.fixture
def harbor(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a person who follows the page, and who is no superuser of Harbor's PostgreSQL."""
    make_harbors_database(NAME)
    with (
        managed(NAME) as url,
        EmbeddedRedis(tmp_path / "redis") as redis,
        EmbeddedRedis(tmp_path / "broker") as broker,
    ):
        password = quote(PASSWORD, safe="")

        def as_user(server: EmbeddedRedis, user: str) -> str:
            return server.url.replace("redis://", f"redis://{user}:{password}@")

        yield {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{find_postgres()}:{os.environ['PATH']}",
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "HARBORS_DATABASE_URL": url,
            "HARBORS_REDIS_URL": redis.url,
            "BROKERS_REDIS_URL": broker.url,
            "PASSWORD": PASSWORD,
            "DATABASE_URL": url.replace(f"//{ADMINISTRATOR}@", f"//harbor_refresh:{password}@"),
            "REDIS_URL": as_user(redis, "harbor_refresh"),
            "CELERY_BROKER_URL": as_user(broker, "harbor_refresh_broker"),
            "REFRESH_ATTACH": "harbor",
        }
        with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)".encode())
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())
        server.execute(b"DROP ROLE IF EXISTS harbor_refresh")


def run(block: str, env: dict[str, str], folder: Path = ROOT, code: int = 0) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, (block, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def serve(block: str, env: dict[str, str], cluster: Cluster) -> None:
    """Start each line, and end it with SIGTERM when it serves."""
    for line in block.splitlines():
        _, *words = line.split()
        cluster.env = env
        member = cluster.start(words[2], [sys.executable, "-m", "celery", *words])
        ready = " ready." if words[2] == "worker" else "beat: Starting"
        wait_for(lambda: ready in member.text(), f"{line} to serve", log=member.log)  # noqa: B023  # awaited here
        member.signal(signal.SIGTERM)
        wait_for(member.died, f"{line} to end", log=member.log)


@pytest.mark.slow
def test_each_step_and_each_way_back_can_be_typed(harbor: dict[str, str], tmp_path: Path) -> None:
    needs("redis-cli")
    before = dump_of_public(NAME)
    cluster = Cluster(NAME, tmp_path)
    ways_back = []
    try:
        for title, (forward, back) in steps().items():
            # the user of the broker is made in step 2
            env = {name: value for name, value in harbor.items() if name != "CELERY_BROKER_URL" or title > "2"}
            for block in forward:
                if block.startswith("celery"):
                    serve(block, env, cluster)
                else:
                    run(block, env)
            ways_back.append(back)
        for back in reversed(ways_back):
            for block in back:
                run(block, harbor)
    finally:
        cluster.end()
    assert dump_of_public(NAME) == before
    with psycopg.connect(servers.postgres.url_for(NAME)) as database:
        left = database.execute(
            "SELECT to_regnamespace('harbor_refresh') IS NULL, count(*) FROM pg_roles"
            " WHERE rolname = 'harbor_refresh'"
        ).fetchone()
    assert left == (True, 0)
    users = [Redis.from_url(harbor[name]).acl_users() for name in ("HARBORS_REDIS_URL", "BROKERS_REDIS_URL")]
    assert users == [["default"], ["default"]]


@pytest.mark.slow
def test_a_database_is_upgraded_and_restored_on_another_server_with_our_tables(
    harbor: dict[str, str], tmp_path: Path
) -> None:
    """Another server is one that has not our role: it is dropped after the dump."""
    needs("redis-cli")
    (tmp_path / "manage.py").symlink_to(ROOT / "manage.py")
    upgrade, role = pages.codes(pages.section(PAGE, ASKED), "sh")
    rights, tables = (forward[0] for title, (forward, _) in steps().items() if title[0] in "24")
    for block in (rights, tables):
        run(block, harbor)
    run(upgrade, harbor, tmp_path)
    with psycopg.connect(harbor["HARBORS_DATABASE_URL"], autocommit=True) as server:
        server.execute(
            "INSERT INTO public.execution (vendor_type, status, trigger, revision)"
            " VALUES ('SCAN', 'Running', 'MANUAL', 0)"
        )
        server.execute("GRANT harbor_refresh TO harbor")
        of_harbor = {"DATABASE_URL": harbor["HARBORS_DATABASE_URL"].replace(ADMINISTRATOR, HARBORS_ROLE)}
        run('pg_dump --format=custom --file=all.dump "$DATABASE_URL"', harbor | of_harbor, tmp_path)
        before = server.execute(TABLES).fetchall()
        server.execute((ROOT / "deploy/attach/rights_back.sql").read_bytes())
        server.execute(f"CREATE DATABASE {RESTORED}".encode())
    there = {name: harbor[name].replace(f"/{NAME}", f"/{RESTORED}") for name in DATABASES}
    env = harbor | there
    with psycopg.connect(env["HARBORS_DATABASE_URL"], autocommit=True) as server:
        server.execute(f"GRANT CREATE ON SCHEMA public TO {HARBORS_ROLE}".encode())  # as Harbor itself needs it
    run(role, env)
    run('pg_restore --exit-on-error --dbname="$HARBORS_DATABASE_URL" all.dump', env, tmp_path)
    missed = run("python manage.py attach check", env, code=1)
    assert re.findall(r"lacks the right (\S+)", missed) == ["pg_read_all_stats"]
    with psycopg.connect(env["HARBORS_DATABASE_URL"], autocommit=True) as server:
        server.execute("GRANT pg_monitor TO harbor_refresh")
        run("python manage.py attach check && python manage.py migrate", env)
        assert server.execute(TABLES).fetchall() == before
        assert server.execute("SELECT count(*) FROM public.execution").fetchone() == (1,)


def test_each_step_has_its_way_back() -> None:
    found = steps()
    assert list(map(int, (title[0] for title in found))) == [1, 2, 3, 4, 5, 6, 7]
    in_steps = [block for both in found.values() for blocks in both for block in blocks]
    later = pages.codes(pages.section(PAGE, ASKED), "sh")
    assert [*in_steps, *later] == pages.codes(PAGE, "sh"), "a block outside of both is run by no test"
