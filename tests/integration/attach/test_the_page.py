"""Every command of docs/howto/attach.md, run as it stands there: step by step, and then the way back."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from redis import Redis

from harbor_refresh.local.postgres import find_postgres
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.tasks.broker.celery_queues import WORK
from harbor_refresh.tasks.queue.keys import HARBORS_PATTERN, HARBORS_SET, member_of_harbors
from tests import pages, servers
from tests.faults.cluster import ROOT, Cluster
from tests.harbor.databases import make_harbors_database
from tests.harbor.dump import dump_of_public
from tests.harbor.managed import ADMINISTRATOR, HARBORS_ROLE, managed
from tests.harbor.restricted import knows_setinfo
from tests.programs import needs
from tests.terminal import ran
from tests.waiting import wait_for

NAME = "harbor_of_the_page"
RESTORED = f"{NAME}_restored"
PROCESSING = "cache:execution:refresh:processing"
#: Many small messages, so that many wait.
BUSY = {"HARBOR_REFRESH_TEST_CHUNK": "10", "HARBOR_REFRESH_TEST_DEPTH": "10"}
#: A shell, sed, an address or a quoted literal may change each of the special characters.
PASSWORD = "a/b&c'd\\e+f=%41"
#: The section behind the steps; the test of an upgrade and a restore runs its blocks.
ASKED = "Common situations"
NEVER_ENDS = "A task never ends"
DATABASES = ("HARBORS_DATABASE_URL", "DATABASE_URL")
TABLES = "SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'harbor_refresh' ORDER BY tablename"
PAGE = pages.read("docs/howto/attach.md")


def steps() -> dict[str, tuple[list[str], list[str]]]:
    """Each step with its blocks, and with those of its way back."""
    found = {}
    for title, text in re.findall(r"^### (\d\..*?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        forward, way_back, back = text.partition("*To undo:*")
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
    if "ACL SETUSER" in block and not knows_setinfo(Redis.from_url(env["BROKERS_REDIS_URL"])):
        block = block.replace("s/ >CHANGE-THIS//", "s/ >CHANGE-THIS//; s/ +client|setinfo//")
    done = ran(["bash", "-euo", "pipefail", "-c", block], folder=folder, env=env)
    assert done.returncode == code, (block, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def serve(block: str, env: dict[str, str], cluster: Cluster, end: signal.Signals) -> set[str]:
    """Start each line, give the workers more than they can take, and end all of them, beat first. Returns the
    marks of the executions that they have not refreshed.

    A transaction holds Harbor's table, so each process of the worker works on a claim and waits, and the messages
    of the other claims wait in the broker.
    """
    marks = Redis.from_url(env["HARBORS_REDIS_URL"])
    broker = Redis.from_url(env["BROKERS_REDIS_URL"])
    cluster.env = env
    with psycopg.connect(env["HARBORS_DATABASE_URL"]) as held:
        marks.sadd(HARBORS_SET, *add_executions(env))
        held.execute("LOCK TABLE execution")
        members = []
        for line in block.splitlines():
            _, *words = line.split()
            member = cluster.start(words[2], [sys.executable, "-m", "celery", *words], **BUSY)
            ready = " ready." if words[2] == "worker" else "beat: Starting"
            wait_for(lambda: ready in member.text(), f"{line} to serve", log=member.log)  # noqa: B023  # awaited here
            members.append(member)
        wait_for(lambda: broker.llen(WORK) > 3, "messages to wait in the broker", log=members[0].log)
        for member in reversed(members):
            if end == signal.SIGKILL:
                member.kill()
            else:
                os.kill(member.process.pid, end)  # alone, as an orchestrator does
    for member in members:
        wait_for(member.died, "each program to end", log=member.log)
    assert broker.llen(WORK) > 3
    left = unrefreshed(env)
    assert min(marks.scard(PROCESSING), len(left)) > 30
    return left


def add_executions(env: dict[str, str]) -> set[str]:
    """Add executions of Harbor whose tasks have ended, and return their marks."""
    with psycopg.connect(env["HARBORS_DATABASE_URL"]) as database:
        ids = database.execute(
            "INSERT INTO execution (vendor_type, vendor_id, status, trigger, revision, start_time, update_time)"
            " SELECT 'REPLICATION', 1, 'Running', 'MANUAL', 0, now(), now() FROM generate_series(1, 300)"
            " RETURNING id"
        ).fetchall()
        database.execute(
            "INSERT INTO task (execution_id, job_id, status, status_code, status_revision, run_count, end_time,"
            " vendor_type)"
            " SELECT id, 'job-' || id, 'Success', 3, 1, 1, now(), vendor_type FROM execution"
        )
    return {f"{pk}:REPLICATION" for (pk,) in ids}


def unrefreshed(env: dict[str, str]) -> set[str]:
    with psycopg.connect(env["HARBORS_DATABASE_URL"]) as database:
        rows = database.execute("SELECT id FROM execution WHERE status = 'Running'").fetchall()
    return {f"{pk}:REPLICATION" for (pk,) in rows}


def assert_marks_are_in_harbors_set(marks: Redis, left: set[str]) -> None:
    assert {one.decode() for one in marks.smembers(HARBORS_SET)} == left
    assert not marks.exists(PROCESSING)


def assert_marks_are_keys(marks: Redis, left: set[str]) -> None:
    assert {member_of_harbors(key) for key in marks.scan_iter(match=HARBORS_PATTERN)} == left
    assert not marks.exists(PROCESSING, HARBORS_SET)


#: What holds after a block of a way back.
OUTCOMES = {
    "python manage.py harbor marks export --set\n": assert_marks_are_in_harbors_set,
    "python manage.py harbor marks export\n": assert_marks_are_keys,
}


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_each_step_and_each_way_back_can_be_typed(
    end: signal.Signals, harbor: dict[str, str], tmp_path: Path
) -> None:
    """Each mark is Harbor's again, whatever waited in the broker when the workers ended or were killed."""
    needs("redis-cli")
    before = dump_of_public(NAME)
    cluster = Cluster(NAME, tmp_path)
    ways_back, left = [], set[str]()
    try:
        for title, (forward, back) in steps().items():
            # the user of the broker is made in step 2
            env = {name: value for name, value in harbor.items() if name != "CELERY_BROKER_URL" or title > "2"}
            for block in forward:
                if block.startswith("celery"):
                    left = serve(block, env, cluster, end)
                else:
                    run(block, env)
            ways_back.append(back)
        typed = [block for back in reversed(ways_back) for block in back]
        assert OUTCOMES.keys() <= set(typed)
        for block in typed:
            run(block, harbor)
            if check := OUTCOMES.get(block):
                check(Redis.from_url(harbor["HARBORS_REDIS_URL"]), left)
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


@pytest.mark.slow
def test_a_task_that_never_ends_is_ended_and_the_right_is_taken_back(harbor: dict[str, str]) -> None:
    needs("redis-cli")
    give, end, take_back = pages.codes(pages.section(PAGE, NEVER_ENDS), "sh")
    for title, (forward, _) in steps().items():
        if title[0] in "24":
            run(forward[0], harbor)
    before = dump_of_public(NAME)
    with psycopg.connect(harbor["HARBORS_DATABASE_URL"], autocommit=True) as database:
        database.execute(
            "INSERT INTO public.execution (vendor_type, status, trigger, revision)"
            " VALUES ('REPLICATION', 'Running', 'MANUAL', 0)"
        )
        database.execute(
            "INSERT INTO public.task (execution_id, job_id, status, status_code, status_revision, run_count,"
            " creation_time, vendor_type)"
            " SELECT id, 'gone', 'Running', 2, 1, 1, now() - interval '2 days', vendor_type FROM public.execution"
        )
        server = harbor["HARBORS_REDIS_URL"].removeprefix("redis://").partition("/")[0]
        with Redis.from_url(f"redis://{server}/2") as job_service:
            pools = "{harbor_job_service_namespace}:worker_pools"
            job_service.sadd(pools, "pool")
            job_service.hset(f"{pools}:pool", "heartbeat_at", job_service.time()[0] + 600)
        run(give, harbor)
        said = run(end.replace("HOST:6379", server), harbor)
        run(take_back, harbor)
        assert "1 dead, dry run: nothing written." in said
        assert "1 dead, 1 ended." in said
        assert database.execute("SELECT status FROM public.task").fetchall() == [("Error",)]
    assert dump_of_public(NAME) == before


def test_each_step_has_its_way_back() -> None:
    found = steps()
    assert list(map(int, (title[0] for title in found))) == [1, 2, 3, 4, 5, 6, 7]
    in_steps = [block for both in found.values() for blocks in both for block in blocks]
    later = [block for title in (NEVER_ENDS, ASKED) for block in pages.codes(pages.section(PAGE, title), "sh")]
    assert [*in_steps, *later] == pages.codes(PAGE, "sh"), "a block outside of both is run by no test"
