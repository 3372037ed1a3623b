"""`manage.py harbor check` in a project: it says what does not run."""

import json
import sys
from pathlib import Path

import pytest
from redis import Redis

from tests import servers
from tests.faults.cluster import Cluster
from tests.hosts.host import Host
from tests.hosts.test_a_celery_app_is_joined import JOINED, SOUND
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

TASKS = """
from celery import shared_task
from harbor_refresh.tasks.jobs import TrackedJob

for name in "abcde":

    @shared_task(base=TrackedJob, name=f"shop.{name}")
    def pack(job):
        pass
"""
STARTS = """
from celery import current_app
from harbor_refresh.tasks.jobs import start

current_app.loader.import_default_modules()
print(start("REPLICATION", jobs=[current_app.tasks["shop.a"].s().set(queue="slwo")]).pk)
"""
REFRESHES = ["-n", "refresh@%h", "-Q", "harbor_refresh,harbor_refresh.ticks,harbor_refresh.deliveries"]


def found(host: Host) -> tuple[int, list[str]]:
    """How the command ends, and the ids of what it finds."""
    code, problems = asked(host)
    return code, sorted(one["id"] for one in problems)


def asked(host: Host) -> tuple[int, list[dict[str, str]]]:
    done = host.run("-m", "django", "harbor", "check", "--json", CELERY_BROKER_URL="")
    return done.returncode, json.loads(done.stdout)["problems"]


def test_it_finds_what_does_not_run(tmp_path: Path, database: str, redis: Redis, cluster: Cluster) -> None:
    often = "HARBOR_REFRESH = {'EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS': 1}"
    host = Host(tmp_path / "shop", database, celery=JOINED, settings=SOUND + often, people__tasks=TASKS)
    cluster.root, cluster.env = host.folder, {**host.env, "CELERY_BROKER_URL": servers.redis.url}
    celery = [sys.executable, "-m", "celery", "-A", "shop"]
    assert found(host) == (1, ["workers.alive"])

    worker = cluster.start("refresh", [*celery, "worker", *REFRESHES, "-c", "1"])
    # no beat runs, but its first tick is not due yet
    wait_for(lambda: found(host) == (0, []), "the heartbeat of the worker", log=worker.log)

    beat = cluster.start("beat", [*celery, "beat"])
    wait_for(lambda: found(host) == (0, []), "a tick", log=beat.log)

    host.ask(STARTS, CELERY_BROKER_URL="")
    told = list[dict[str, str]]()

    def is_alone() -> bool:  # on a busy machine the worker may answer too late, which is told as well
        told[:] = asked(host)[1]
        return [one["id"] for one in told] == ["workers.jobs"]

    wait_for(is_alone, "that this is the one problem", log=worker.log)
    assert told[0]["what"] == "No worker takes the queue slwo, in which 1 job waits: it does not begin."
    assert "worker -n slwo@%h -Q slwo. If the name is a mistake, correct it" in told[0]["todo"]


DISCOVERS = "app.autodiscover_tasks()\n"


def test_it_finds_jobs_that_no_worker_knows(tmp_path: Path, database: str, redis: Redis, cluster: Cluster) -> None:
    """The worker makes the checks of the project at its start, too, and must not learn the jobs by them."""
    host = Host(tmp_path / "shop", database, celery=JOINED, settings=SOUND, people__tasks=TASKS)
    module = host.folder / "shop/celery.py"
    sound = module.read_text(encoding="utf-8")
    cluster.root, cluster.env = host.folder, {**host.env, "CELERY_BROKER_URL": servers.redis.url}
    celery = [sys.executable, "-m", "celery", "-A", "shop"]

    module.write_text(sound.replace(DISCOVERS, ""), encoding="utf-8")
    worker = cluster.start("refresh", [*celery, "worker", *REFRESHES, "-c", "1"])
    wait_for(lambda: "workers.tasks" in found(host)[1], "the answer of the worker", log=worker.log)
    (told,) = [one for one in asked(host)[1] if one["id"] == "workers.tasks"]
    assert told["what"] == "No worker knows these jobs: shop.a, shop.b, shop.c and 2 more. They end as Error."
    first, then = told["todo"].split(". ")
    assert first == "Start or restart the worker that should run them"
    assert "add app.autodiscover_tasks() where the project makes its Celery app" in then

    worker.kill()
    module.write_text(sound, encoding="utf-8")
    worker = cluster.start("refresh", [*celery, "worker", *REFRESHES, "-c", "1"])
    wait_for(
        lambda: not {"workers.queues", "workers.tasks", "workers.alive"} & set(found(host)[1]),
        "a worker that knows them",
        log=worker.log,
    )


def test_it_finds_servers_that_do_not_answer(tmp_path: Path, database: str, redis: Redis) -> None:
    down = "redis://127.0.0.1:1/0"
    queue = Host(
        tmp_path / "queue", database, celery=JOINED, settings=f"{SOUND}HARBOR_REFRESH = {{'REDIS_URL': '{down}'}}"
    )
    assert "redis.reachable" in found(queue)[1]
    both = Host(tmp_path / "both", database, broker=down, celery=JOINED, settings=SOUND)
    assert found(both) == (1, ["redis.reachable"])
    broker = f"{SOUND}HARBOR_REFRESH = {{'REDIS_URL': '{servers.redis.url}'}}"
    assert found(Host(tmp_path / "broker", database, broker=down, celery=JOINED, settings=broker))[1] == [
        "broker.reachable",
        "workers.alive",
    ]


@pytest.mark.parametrize(
    ("name", "todo"),
    [
        ("postgres", "manage.py migrate"),
        ("none", "Correct the account, the password and the name of the database in DATABASES in the settings."),
    ],
    ids=["without our tables", "that does not exist"],
)
def test_it_says_what_to_do_about_a_database(name: str, todo: str, tmp_path: Path, redis: Redis) -> None:
    host = Host(tmp_path, name, celery=JOINED, settings=SOUND)
    (told,) = [one["todo"] for one in asked(host)[1] if one["id"] in ("database.reachable", "tables.migrations")]
    assert told.startswith(todo)
