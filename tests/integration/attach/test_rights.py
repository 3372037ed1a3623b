"""The rights of deploy/attach: with exactly these all works, and with less an error names what is missing."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from redis import Redis

from harbor_refresh.management.attach.prerequisites import redis_rights as of_redis
from harbor_refresh.tasks.checks.facts import Facts, RedisServer
from harbor_refresh.tasks.queue.keys import HARBORS_KEY, HARBORS_PATTERN, SEEDS_KEY
from tests.faults.cluster import Cluster
from tests.harbor.core import MARKS
from tests.harbor.databases import ATTACHED
from tests.harbor.restricted import FILES, Restricted, give_rights, restricted_harbor
from tests.integration.executions.deliveries.receiver import receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

USER = "harbor_refresh"
OF_BROKER = "harbor_refresh_broker"
PROCESSING = "cache:execution:refresh:processing"
#: Pages that a person of the admin opens, and a form that refreshes.
BROWSE = """
from django.contrib.auth.models import User
from django.test import Client
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.create_superuser("operator"))
pages = ["", "harbor_executions/execution/", "harbor_executions/task/", "harbor_executions/execution/1/change/",
         "harbor_executions/execution/1/place/", "harbor_executions/statuschange/", "harbor_tasks/pause/"]
print([(page, client.get("/admin/" + page).status_code) for page in pages])
"""
MARK_TWICE = """
from harbor_refresh.tasks.pipeline.marks import mark
print([mark(["ID:REPLICATION"]) for _ in range(2)])
"""
#: A webhook on a loopback address may be called.
DELIVERS = {"REFRESH_DELIVER_NETWORKS": "127.0.0.1/32"}
#: A program that subscribes a webhook by the API, and goes on until its token has used up the minute. No minute
#: ends here. The settings of the tests have another cache, so it uses those of a developer.
CALL = """
import time
from types import SimpleNamespace
from django.test import Client
from harbor_refresh.executions.api import access, api_tokens
now = time.time()
access.time = SimpleNamespace(time=lambda: now, monotonic=time.monotonic)
_, token = api_tokens.make("a program", manage=True)
client = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
hook = {"name": "receiver", "url": "URL"}
answers = [client.post("/api/v1/subscriptions", hook, content_type="application/json")]
answers += [client.get("/api/v1/executions") for _ in range(3)]
print(*(one.status_code for one in answers))
"""
OF_A_PROGRAM = {"DJANGO_SETTINGS_MODULE": "settings.dev", "REFRESH_API_REQUESTS_PER_MINUTE": "3", **DELIVERS}
#: Every client sends these when it connects, so without them there is no connection whose error could name more.
OF_A_CONNECTION = {"auth", "hello", "client|setinfo", "client|setname", "select", "ping"}
#: Only `attach check` uses it.
OF_THE_CHECK = {"type"}


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restricted]:
    with restricted_harbor("harbor_restricted", tmp_path_factory.mktemp("restricted")) as made:
        done = made.manage("migrate", "--verbosity=0")
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture
def cluster(harbor: Restricted, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(harbor.name, tmp_path)
    cluster.env |= {**ATTACHED, **DELIVERS, **harbor.env}
    yield cluster
    cluster.end()


def add(harbor: Restricted, status: str, *words: str) -> int:
    ((pk,),) = harbor.database.execute(
        "INSERT INTO execution (vendor_type, status, trigger, revision) VALUES ('REPLICATION', %s, 'MANUAL', 0)"
        " RETURNING id",
        [status],
    ).fetchall()
    for word in words:
        harbor.database.execute(
            "INSERT INTO task (execution_id, status, status_code, vendor_type, update_time, end_time)"
            " VALUES (%s, %s, 3, 'REPLICATION', now() AT TIME ZONE 'UTC', now() AT TIME ZONE 'UTC')",
            [pk, word],
        )
    return int(pk)


def statuses(harbor: Restricted) -> list[str]:
    return [status for (status,) in harbor.database.execute("SELECT DISTINCT status FROM execution").fetchall()]


BEAT_IS_AT_IT = "another reconcile is running, so this one did nothing. Repeat it when that has ended."


def succeeds(harbor: Restricted, *words: str) -> None:
    done = harbor.manage(*words, "--json")
    if BEAT_IS_AT_IT in done.stderr:
        wait_for(lambda: harbor.manage(*words).returncode == 0, "a reconcile after that of beat")
    else:
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def commands_of(file: str) -> list[str]:
    """The commands that a file of rights allows."""
    return [word[1:] for word in (FILES / file).read_text().split() if word.startswith("+")]


def commands_that_ran(server: Redis) -> set[str]:
    """What it has run since its statistics were reset, also in scripts."""
    found = server.info("commandstats")
    return {name.removeprefix("cmdstat_") for name, one in found.items() if one["calls"]}


def test_with_exactly_these_rights_everything_works(harbor: Restricted, cluster: Cluster, tmp_path: Path) -> None:
    """Marks of all releases, a killed worker, reconcile, repair, commands, pages, the API and a webhook. Neither
    Redis has refused a command meanwhile, and each command that is allowed was used.

    The check tries every command that is allowed, so it comes first. From then on this test itself uses none of
    them but INFO.
    """
    marked = [add(harbor, "Running", "Success") for _ in range(30)]
    harbor.redis.sadd(MARKS, *(f"{pk}:REPLICATION" for pk in marked[:20]))
    harbor.redis.mset({form % (pk, "REPLICATION"): "" for pk in marked[20:] for form in (HARBORS_KEY, SEEDS_KEY)})
    add(harbor, "Running", "Success")  # no mark names it
    succeeds(harbor, "attach", "check")
    harbor.redis.config_resetstat()
    with receiver() as hook:
        called = harbor.manage("shell", "-v", "0", "-c", CALL.replace("URL", hook.url), **OF_A_PROGRAM)
        assert called.stdout.splitlines()[-1:] == ["201 200 200 429"], (called.stdout, called.stderr)
        cluster.beat()
        act = {"point": "deciding", "act": "kill_group", "once": str(tmp_path / "acted")}
        victim = cluster.worker("victim", concurrency=1, sabotage=act)
        wait_for(victim.died, "the victim to die", log=victim.log)
        taken = set(harbor.broker.hkeys("unacked"))
        assert taken
        heir = cluster.worker(concurrency=1)
        wait_for(lambda: statuses(harbor) == ["Success"], "the marks and reconcile to refresh all", log=heir.log)
        wait_for(
            lambda: not taken & set(harbor.broker.hkeys("unacked")), "its messages to come again", log=heir.log
        )
        wait_for(lambda: hook.received, "the webhook to be called", log=heir.log)
    wait_for(lambda: not harbor.redis.keys(PROCESSING), "the claims to be completed")
    wait_for(lambda: not harbor.redis.keys(HARBORS_PATTERN), "the keys of older releases to be taken in")
    succeeds(harbor, "harbor", "repair", "drift", "--full")
    succeeds(harbor, "harbor", "status")
    succeeds(harbor, "harbor", "why", str(marked[0]))
    succeeds(harbor, "harbor", "status", "--jobs")
    succeeds(harbor, "harbor", "list")
    pages = harbor.manage("shell", "-v", "0", "-c", BROWSE)
    assert pages.returncode == 0, pages.stderr
    assert "200" in pages.stdout
    assert [one for one in pages.stdout.split("), (") if "200" not in one] == []
    cluster.end()  # so that no worker takes the marks that follow
    twice = harbor.manage("shell", "-v", "0", "-c", MARK_TWICE.replace("ID", str(marked[0])))
    assert "[True, True]" in twice.stdout, twice.stderr
    succeeds(harbor, "harbor", "pause")
    succeeds(harbor, "harbor", "marks", "export")
    assert harbor.refused() == []
    assert "permission denied" not in cluster.logs()
    used = commands_that_ran(harbor.redis)
    assert set(commands_of("redis.acl")) - used - OF_A_CONNECTION - OF_THE_CHECK == set()


DATABASE_RIGHTS = {
    "SELECT ON public.task": "SELECT on the table task",
    "SELECT ON public.execution": "SELECT on the table execution",
    "UPDATE (status) ON public.execution": "UPDATE (status) on the table execution",
    "UPDATE (revision) ON public.execution": "UPDATE (revision) on the table execution",
    "UPDATE (update_time) ON public.execution": "UPDATE (update_time) on the table execution",
    "UPDATE (end_time) ON public.execution": "UPDATE (end_time) on the table execution",
    "pg_read_all_stats": "pg_read_all_stats to see the transactions of Harbor's cores",
}


def test_each_right_that_is_missing_in_the_database_is_named(harbor: Restricted) -> None:
    """All of them are taken away one after another, and named with the statement that grants them."""
    for right in DATABASE_RIGHTS:
        harbor.database.execute(f"REVOKE {right} FROM harbor_refresh".encode())
    done = harbor.manage("attach", "check", "--json")
    assert done.returncode == 1
    (rights,) = (one for one in json.loads(done.stdout)["checks"] if one["check"] == "attach.rights")
    named = {one["what"] for one in rights["problems"]}
    assert named == {f"The role harbor_refresh lacks the right {one}." for one in DATABASE_RIGHTS.values()}
    for one in rights["problems"]:
        harbor.database.execute(one["todo"].partition(";")[0].encode())
    again = json.loads(harbor.manage("attach", "check", "--json").stdout)
    assert [one["problems"] for one in again["checks"] if one["check"] == "attach.rights"] == [[]]


GRANT_USAGE = "GRANT USAGE ON SCHEMA public TO harbor_refresh;"
REFRESH = "from harbor_refresh.executions.lifecycle.rollup import refresh; refresh([PK])"


def test_without_the_right_to_the_schema_that_is_named_and_no_row_is_at_fault(harbor: Restricted) -> None:
    """PostgreSQL says then that the tables do not exist. A role has the right as long as PUBLIC has it."""
    pk = add(harbor, "Running", "Success")
    harbor.database.execute(b"REVOKE USAGE ON SCHEMA public FROM PUBLIC, harbor_refresh")
    try:
        check = harbor.manage("attach", "check", "--json")
        repair = harbor.manage("harbor", "repair", "drift", "--full")
        refresh = harbor.manage("shell", "-v", "0", "-c", REFRESH.replace("PK", str(pk)))
    finally:
        harbor.database.execute(b"GRANT USAGE ON SCHEMA public TO PUBLIC, harbor_refresh")
    found = {one["check"]: one["problems"] for one in json.loads(check.stdout)["checks"] if one["problems"]}
    assert {name: [(one["what"], one["todo"].partition(" (")[0]) for one in found[name]] for name in found} == {
        "attach.rights": [("The role harbor_refresh lacks the right USAGE on the schema public.", GRANT_USAGE)]
    }
    assert (check.returncode, repair.returncode, refresh.returncode) == (1, 1, 1)
    assert "`manage.py attach check` says what to do." in repair.stderr
    assert "harbor_refresh.executions.errors.RightMissing: " in refresh.stderr, "the work waits, and goes on"
    assert harbor.manage("harbor", "repair", "refresh", str(pk)).returncode == 0
    assert statuses(harbor) == ["Success"]


def unnamed(file: str, server: Redis, user: str, look: Callable[[], Iterator[CheckMessage]]) -> list[str]:
    """The commands of this file that the check does not name when they are missing. Each is taken away alone."""
    missed = []
    for command in commands_of(file):
        if command in OF_A_CONNECTION:
            continue
        server.execute_command("ACL", "SETUSER", user, f"-{command}")
        try:
            told = " ".join(str(one.msg) for one in look()).lower()
        finally:
            server.execute_command("ACL", "SETUSER", user, f"+{command}")
        # the words of Redis 7.0 name no command that a script may not run; ours do
        if f"'{command}'" not in told and f"refuses {command}:" not in told:
            missed.append(command)
    return missed


def test_each_command_that_is_missing_in_redis_is_named(harbor: Restricted) -> None:
    """The check looks by itself, in this process, because a process takes a second."""
    facts = Facts()
    facts.redis = RedisServer(harbor.env["REDIS_URL"])
    assert list(of_redis(facts)) == []
    assert unnamed("redis.acl", harbor.redis, USER, lambda: of_redis(facts)) == []
    assert list(of_redis(facts)) == []
    assert not harbor.redis.keys("*attach-check*")
    assert not harbor.redis.sismember(MARKS, "-")


def test_a_member_that_cannot_be_taken_out_of_harbors_set_is_not_put_in(harbor: Restricted) -> None:
    facts = Facts()
    facts.redis = RedisServer(harbor.env["REDIS_URL"])
    harbor.redis.execute_command("ACL", "SETUSER", USER, "-srem")
    named = [str(one.msg).split(":")[0] for one in of_redis(facts)]
    harbor.redis.execute_command("ACL", "SETUSER", USER, "+srem")
    assert named == ["Redis refuses SREM"]
    assert not harbor.redis.sismember(MARKS, "-")


@pytest.mark.parametrize("command", ["brpop", "psubscribe"])
def test_a_worker_that_may_not_take_messages_names_the_command(
    harbor: Restricted, cluster: Cluster, command: str
) -> None:
    words = ["-m", "celery", "-A", "harbor_refresh", "worker", "-c", "1", "--without-gossip", "--without-mingle"]
    harbor.broker.execute_command("ACL", "SETUSER", OF_BROKER, f"-{command}")
    try:
        worker = cluster.start("worker", [sys.executable, *words])
        wait_for(lambda: f"'{command}'" in worker.text(), "the worker to name it", log=worker.log)
    finally:
        harbor.broker.execute_command("ACL", "SETUSER", OF_BROKER, f"+{command}")


def test_a_key_that_is_missing_in_redis_is_named(harbor: Restricted) -> None:
    facts = Facts()
    facts.redis = RedisServer(harbor.env["REDIS_URL"])
    harbor.redis.execute_command("ACL", "SETUSER", USER, "resetkeys", "~cache:execution:*")
    named = " ".join(str(one.msg) for one in of_redis(facts))
    give_rights("redis.acl", harbor.redis)
    assert "Redis refuses EVALSHA: " in named
    assert "key" in named
    assert list(of_redis(facts)) == []


OF_DEAD_TASKS = re.compile(r"GRANT (UPDATE \([a-z_, ]+\)) ON public\.task TO harbor_refresh")


def test_the_right_of_the_page_is_enough_to_end_dead_tasks_and_without_it_the_command_names_it(
    harbor: Restricted,
) -> None:
    """Without it nothing is written. With it the task ends, and its execution is refreshed. The other tests have
    exactly the rights of the files, so the right is taken back."""
    (right,) = OF_DEAD_TASKS.findall((FILES.parents[1] / "docs" / "howto" / "attach.md").read_text())
    pk = add(harbor, "Running")
    harbor.database.execute(
        "INSERT INTO task (execution_id, status, status_code, status_revision, run_count, vendor_type, job_id,"
        " update_time, creation_time)"
        " VALUES (%s, 'Running', 2, 7, 1, 'REPLICATION', 'lost', '2026-01-01', '2026-01-01')",
        [pk],
    )
    prefix = "{harbor_job_service_namespace}:"
    harbor.redis.sadd(f"{prefix}worker_pools", "pool")
    harbor.redis.hset(f"{prefix}worker_pools:pool", "heartbeat_at", int(time.time()) + 600)
    values = {"id": "lost", "status": "Success", "revision": 7, "update_time": 7}
    harbor.redis.hset(f"{prefix}job_stats:lost", mapping=values)
    known = harbor.redis.connection_pool.connection_kwargs
    words = ("attach", "dead-tasks", "--job-service-redis", f"redis://{known['host']}:{known['port']}/0")
    without = harbor.manage(*words)
    assert without.returncode == 1
    assert (
        f'type GRANT {right} ON public.task TO "harbor_refresh"; and then repeat this command.' in without.stderr
    )
    assert len(without.stderr.strip().splitlines()) == 1
    task = "SELECT status, status_code, status_message FROM task WHERE job_id = 'lost'"
    assert harbor.database.execute(task).fetchall() == [("Running", 2, None)]
    harbor.database.execute(f"GRANT {right} ON public.task TO harbor_refresh".encode())
    try:
        succeeds(harbor, *words)
    finally:
        harbor.database.execute(f"REVOKE {right} ON public.task FROM harbor_refresh".encode())
        harbor.redis.delete(f"{prefix}worker_pools", f"{prefix}worker_pools:pool", f"{prefix}job_stats:lost")
    assert harbor.database.execute(task).fetchall() == [
        ("Success", 3, "The job service says Success; its report was lost.")
    ]
    succeeds(harbor, "harbor", "repair", "refresh", str(pk))
    assert statuses(harbor) == ["Success"]


def test_a_command_that_a_script_may_not_run_is_named_and_no_absence(harbor: Restricted) -> None:
    harbor.redis.execute_command("ACL", "SETUSER", USER, "-scard")
    try:
        done = harbor.manage("harbor", "marks", "export")
    finally:
        harbor.redis.execute_command("ACL", "SETUSER", USER, "+scard")
    assert done.returncode == 1
    assert "'scard'" in done.stderr or "can't run this command" in done.stderr  # as Redis 7.0 says it
    assert done.stderr.strip().endswith(
        "Redis answers, and refuses this program: its user may not use that command, or not on that key. "
        "`manage.py attach check` says what to do."
    )
