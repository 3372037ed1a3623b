"""The rights of deploy/attach: with exactly these all works, and with less an error names what is missing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harbor_refresh.attach.rights import of_redis
from harbor_refresh.doctor.facts import Facts, Need, RedisServer
from tasks.queue.legacy_keys import FORM, PATTERN, SEED_FORM
from tests.faults.cluster import Cluster
from tests.harbor.core import MARKS
from tests.harbor.databases import ATTACHED
from tests.harbor.restricted import FILES, Restricted, give_rights, restricted_harbor
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

USER = "harbor_refresh"
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


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restricted]:
    with restricted_harbor("harbor_restricted", tmp_path_factory.mktemp("restricted")) as made:
        done = made.manage("migrate", "--verbosity=0")
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture
def cluster(harbor: Restricted, tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(harbor.name, tmp_path)
    cluster.env |= {**ATTACHED, **harbor.env}
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


BEAT_IS_AT_IT = "another reconcile is running, so this one did nothing. Repeat it in a moment."


def test_with_exactly_these_rights_everything_works(harbor: Restricted, cluster: Cluster) -> None:
    """Marks of all releases, reconcile, repair, commands, pages. Neither Redis has refused a command meanwhile."""
    cluster.worker(concurrency=1)
    cluster.beat()
    marked = [add(harbor, "Running", "Success") for _ in range(30)]
    harbor.redis.sadd(MARKS, *(f"{pk}:REPLICATION" for pk in marked[:20]))
    harbor.redis.mset({form % (pk, "REPLICATION"): "" for pk in marked[20:] for form in (FORM, SEED_FORM)})
    add(harbor, "Running", "Success")  # no mark names it
    wait_for(
        lambda: statuses(harbor) == ["Success"],
        "the marks and reconcile to refresh all",
        log=cluster.members[0].log,
    )
    wait_for(lambda: not harbor.redis.scard(PROCESSING), "the claims to be completed")
    wait_for(lambda: not harbor.redis.keys(PATTERN), "the keys of older releases to be taken in")
    for words in (
        ("attach", "check"),
        ("attach", "repair"),
        ("reconcile", "--full"),
        ("refresh_queue", "stats"),
        ("refresh_queue", "claims"),
        ("refresh_queue", "recover"),
        ("executions", "list"),
        ("refresh_queue", "import-legacy", "--dry-run"),
        ("refresh_queue", "import-legacy"),
        ("refresh_queue", "mark", str(marked[0])),
        ("refresh_queue", "export-legacy", "--force"),
    ):
        done = harbor.manage(*words, "--json")
        if BEAT_IS_AT_IT in done.stderr:
            wait_for(lambda words=words: harbor.manage(*words).returncode == 0, "a reconcile after that of beat")
        else:
            assert done.returncode == 0, (words, done.stdout, done.stderr)
    pages = harbor.manage("shell", "-v", "0", "-c", BROWSE)
    assert pages.returncode == 0, pages.stderr
    assert "200" in pages.stdout
    assert [one for one in pages.stdout.split("), (") if "200" not in one] == []
    assert harbor.refused() == []


DATABASE_RIGHTS = {
    "SELECT ON public.task": "SELECT on the table task",
    "SELECT ON public.execution": "SELECT on the table execution",
    "UPDATE (status) ON public.execution": "UPDATE (status) on the table execution",
    "UPDATE (revision) ON public.execution": "UPDATE (revision) on the table execution",
    "UPDATE (update_time) ON public.execution": "UPDATE (update_time) on the table execution",
    "UPDATE (end_time) ON public.execution": "UPDATE (end_time) on the table execution",
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


#: Every client sends these when it connects, so without them there is no connection whose error could name more.
OF_A_CONNECTION = {"auth", "hello", "client|setinfo", "client|setname", "select", "ping"}


def commands_of(file: str) -> list[str]:
    """The commands that a file of rights allows."""
    return [word[1:] for word in (FILES / file).read_text().split() if word.startswith("+")]


def test_each_command_that_is_missing_in_redis_is_named(harbor: Restricted) -> None:
    """Each is taken away alone. The check looks by itself, in this process, because a process takes a second."""
    facts = Facts()
    facts.redis = RedisServer(Need.REDIS, "REDIS_URL", harbor.env["REDIS_URL"])
    assert list(of_redis(facts)) == []
    missed = []
    for command in commands_of("redis.acl"):
        if command in OF_A_CONNECTION:
            continue
        harbor.redis.execute_command("ACL", "SETUSER", USER, f"-{command}")
        try:
            named = " ".join(one.what for one in of_redis(facts)).lower()
        finally:
            harbor.redis.execute_command("ACL", "SETUSER", USER, f"+{command}")
        if command.replace("script|load", "evalsha") not in named:
            missed.append(command)
    assert missed == []
    assert list(of_redis(facts)) == []
    assert not harbor.redis.keys("*attach-check*")
    assert not harbor.redis.sismember(MARKS, "-")


def test_a_key_that_is_missing_in_redis_is_named(harbor: Restricted) -> None:
    facts = Facts()
    facts.redis = RedisServer(Need.REDIS, "REDIS_URL", harbor.env["REDIS_URL"])
    harbor.redis.execute_command("ACL", "SETUSER", USER, "resetkeys", "~cache:execution:*")
    named = " ".join(one.what for one in of_redis(facts))
    give_rights("redis.acl", harbor.redis)
    assert "Redis refuses SCARD: " in named
    assert "Redis refuses SADD: " not in named, "a member that cannot be taken out was put in"
    assert list(of_redis(facts)) == []


def test_work_that_lacks_a_right_waits_and_the_error_names_the_table(harbor: Restricted) -> None:
    """Not a row is at fault, so none goes to quarantine."""
    pk = add(harbor, "Running", "Success")
    harbor.database.execute(b"REVOKE UPDATE (status) ON public.execution FROM harbor_refresh")
    try:
        done = harbor.manage("attach", "repair")
    finally:
        harbor.database.execute(b"GRANT UPDATE (status) ON public.execution TO harbor_refresh")
    assert done.returncode == 1
    assert "permission denied for table execution" in done.stderr
    assert "`manage.py attach check` names each, with the statement that grants it" in done.stderr
    assert statuses(harbor) == ["Running", "Success"] or statuses(harbor) == ["Success", "Running"]
    assert harbor.manage("attach", "repair").returncode == 0
    assert statuses(harbor) == ["Success"], pk


def test_a_command_that_a_script_may_not_run_is_a_refusal_and_no_absence(harbor: Restricted) -> None:
    harbor.redis.execute_command("ACL", "SETUSER", USER, "-scard")
    try:
        done = harbor.manage("refresh_queue", "stats")
    finally:
        harbor.redis.execute_command("ACL", "SETUSER", USER, "+scard")
    assert done.returncode == 1
    assert "scard" in done.stderr
    assert "Redis answers, and refuses this program." in done.stderr
