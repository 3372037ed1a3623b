"""`python -m benchmarks`: a small run of everything, on existing servers with other data."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import psycopg
import pytest
from redis import Redis

from benchmarks.existing_servers import SCHEMA
from tests import servers
from tests.pages import ROOT
from tests.terminal import ran
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

DATABASE = "harbor_refresh_existing"
KEYS = {
    *("strategy", "nodes", "executions", "seconds", "executions_per_second", "redis_commands"),
    *("redis_cpu_seconds", "redis_memory_bytes", "sql_statements", "duplicates", "lost", "wrong"),
}
OTHER = "an execution of another installation"


def environment(**more: str) -> dict[str, str]:
    given = {"DATABASE_URL": servers.postgres.url_for(DATABASE), "REDIS_URL": servers.redis.url}
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test", **given, **more}


def bench(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-m", "benchmarks", *map(str, words)], env=environment(**more), seconds=900)


@pytest.fixture(scope="module", autouse=True)
def given() -> Iterator[psycopg.Connection]:
    """A database whose schema `public` has another installation."""
    with psycopg.connect(servers.postgres.url_for("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(servers.postgres.url_for(DATABASE), autocommit=True) as connection:
            connection.execute("CREATE TABLE public.execution (id bigint, vendor_type text)")
            connection.execute("CREATE TABLE public.django_migrations (id bigint, app text, name text)")
            connection.execute("INSERT INTO public.execution VALUES (1, %s)", [OTHER])
            yield connection
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture
def own() -> Iterator[Redis]:
    """The Redis database the bench works in."""
    client = Redis.from_url(servers.redis.url_for(15))
    client.flushdb()
    yield client
    client.flushdb()
    client.close()


def nothing_is_left(given: psycopg.Connection, own: Redis) -> bool:
    schemas = given.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [SCHEMA]).fetchall()
    others = given.execute("SELECT id, vendor_type FROM public.execution").fetchall()
    return schemas == [] and others == [(1, OTHER)] and own.dbsize() == 0


@pytest.fixture(scope="module")
def rows(given: psycopg.Connection, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One run of all strategies, by the name of each."""
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    with Redis.from_url(servers.redis.url_for(15)) as client:
        client.flushdb()
        words = ("--executions", 300, "--nodes", 2, "--workers", 2, "--concurrency", 1, "--json", path)
        done = bench(*words, REFRESH_KEY_PREFIX="must:not:matter:")
        assert done.returncode == 0, done.stderr
        assert nothing_is_left(given, client)
    assert "claim+celery" in done.stdout
    assert "scan: 2 nodes" in done.stderr
    return {row["strategy"]: row for row in json.loads(path.read_text())}


def test_there_is_a_row_for_every_strategy_and_for_both_limits(rows: dict[str, dict[str, Any]]) -> None:
    assert list(rows) == ["scan", "lock", "hash", "upstream", "claim", "claim+celery", "limit", "redis"]
    for row in rows.values():
        assert row.keys() >= KEYS
        assert row["executions"] == row["executions_done"] == 300
        assert row["cut"] is False
        assert row["seconds"] > 0
        assert row["about"]["versions"]["postgresql"]
        assert row["about"]["parameters"]["synchronous_commit"] == "on"
        assert row["about"]["parameters"]["appendonly"] in ("yes", "no")


def larger_until(told: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row, or that of a larger pass of its strategy: one of 300 executions may end before a node is killed,
    or before the other node begins, and a node that is killed may have ended its share."""
    executions = 300
    while not row[told]:
        executions *= 5
        assert executions < 50_000, f"no pass of {row['strategy']} had {told}"
        words = ("--nodes", 2, "--workers", 2, "--concurrency", 1, "--strategies", row["strategy"])
        done = bench("--executions", executions, *words, "--json", "-")
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)[0]
    return row


def test_nodes_that_scan_refresh_twice_and_nodes_that_claim_refresh_once(
    given: psycopg.Connection, own: Redis, rows: dict[str, dict[str, Any]]
) -> None:
    scan = larger_until("duplicates", rows["scan"])
    assert scan["refreshes"] == scan["executions"] + scan["duplicates"]
    for name in ("lock", "hash", "upstream", "claim", "claim+celery", "limit", "redis"):
        assert rows[name]["duplicates"] == 0, name


def test_a_crash_strands_the_share_of_a_hash_node_and_loses_no_claim(
    given: psycopg.Connection, own: Redis, rows: dict[str, dict[str, Any]]
) -> None:
    names = ("scan", "hash", "upstream", "claim", "claim+celery")
    crashed = {name: larger_until("killed", rows[name]) for name in names}
    crashed["hash"] = larger_until("stranded", crashed["hash"])
    assert crashed["hash"]["wrong"] == crashed["hash"]["stranded"]
    for name in ("claim", "claim+celery", "scan"):
        assert (crashed[name]["lost"], crashed[name]["stranded"], crashed[name]["wrong"]) == (0, 0, 0), name


def test_only_the_statements_and_commands_of_the_pass_are_counted(rows: dict[str, dict[str, Any]]) -> None:
    """`hash` refreshes each execution once, with the four statements of the original. The bare loop takes four
    statements a chunk, and a node's range is smaller than a chunk. Filling, marking and checking are left out."""
    assert rows["hash"]["sql_counted"] == "statements"
    assert rows["hash"]["sql_statements"] == 4 * 300
    assert rows["hash"]["redis_commands_by_kind"]["srem"] == 300
    assert rows["limit"]["sql_statements"] == 4 * 2
    assert rows["limit"]["redis_commands"] == 0
    assert rows["redis"]["sql_statements"] == 0
    # the meter's own question, which has a long answer, is in both
    assert rows["claim"]["redis_network_bytes"] > rows["limit"]["redis_network_bytes"] + 300 * 50
    assert all(rows[name]["wal_bytes"] > 300 * 50 for name in ("hash", "claim", "limit"))
    assert rows["claim"]["table_bytes"]["task"] > 300 * 4 * 50
    assert rows["redis"]["redis_commands_by_kind"].keys() == {"spop", "sadd", "srem"}


def test_a_pass_that_the_budget_ends_is_flagged_and_not_extrapolated(
    given: psycopg.Connection, own: Redis
) -> None:
    words = ("--strategies", "upstream", "--executions", 30_000, "--tasks-per-execution", 1, "--nodes", 1)
    done = bench(*words, "--budget", 2, "--json", "-")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)[0]
    assert row["cut"] is True
    assert 0 < row["executions_done"] < 30_000
    assert row["wrong"] is None
    assert row["lost"] is None
    assert row["seconds"] < 20
    assert row["executions_per_second"] == pytest.approx(row["executions_done"] / row["seconds"], rel=0.01)
    assert abs(row["refreshes"] - row["executions_done"]) <= 1
    assert nothing_is_left(given, own)


def test_a_redis_database_that_is_not_empty_is_refused_and_left_alone(own: Redis) -> None:
    own.set("other", "value")
    done = bench("--executions", 1)
    assert done.returncode == 1
    assert "database 15 is not empty (1 keys)" in done.stderr
    assert "--redis-db N" in done.stderr
    assert own.get("other") == b"value"


def test_a_server_that_is_down_is_an_error_of_one_line(own: Redis) -> None:
    for variable, url in (
        ("REDIS_URL", "redis://127.0.0.1:1/0"),
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none"),
    ):
        done = bench("--executions", 1, **{variable: url})
        assert done.returncode == 1
        assert done.stderr.startswith(f"{variable} is set, but ")
        assert len(done.stderr.splitlines()) == 1


def node_processes() -> list[int]:
    """The ids of the node processes that work on the Redis of this test."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if "benchmarks.node" in process.cmdline() and process.environ().get(
                "REDIS_URL"
            ) == servers.redis.url_for(15):
                found.append(process.pid)
    return found


def test_ctrl_c_leaves_nothing_behind(given: psycopg.Connection, own: Redis) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "--executions", "50000", "--strategies", "upstream"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("upstream: 2 nodes"):
            break
    wait_for(lambda: 0 < own.scard("cache:execution:refresh:queue:v2") < 50_000, "the nodes to be at work")
    assert len(node_processes()) == 2
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=300)[1]
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in rest
    assert nothing_is_left(given, own)
    assert node_processes() == []
