"""A project with a result backend: its tracked jobs write nothing to it, and plain calls of the same tasks do."""

import sys
from pathlib import Path

import pytest
from redis import Redis

from tests import servers
from tests.faults.cluster import Cluster
from tests.hosts.host import Host
from tests.hosts.test_a_celery_app_is_joined import JOINED, SOUND

pytestmark = pytest.mark.slow

TASKS = """
from celery import shared_task
from harbor_refresh import TrackedJob


@shared_task(base=TrackedJob, name="shop.pack", keep_result=True)
def pack(job, number):
    return number + 1


@shared_task(base=TrackedJob, name="shop.fail")
def fail(job):
    job.retry(countdown=0, max_retries=1)
"""
WORKED = """
from celery import chain, current_app
from harbor_refresh import start
from shop.people.tasks import fail, pack


def written():
    return len(current_app.backend.client.keys("celery-task-meta-*"))


execution = start("EXPORT", jobs=[chain(pack.s(1), pack.s()), fail.s()])
status = execution.wait(timeout=60)
of_jobs = [status, [one.value for one in execution.results()], written()]
print(json.dumps([*of_jobs, pack.delay(6).get(timeout=60), written()]))
"""
QUEUES = "shop,harbor_refresh,harbor_refresh.ticks,harbor_refresh.deliveries"


def test_jobs_write_no_result_and_plain_calls_do(
    tmp_path: Path, database: str, redis: Redis, cluster: Cluster
) -> None:
    settings = f"{SOUND}CELERY_RESULT_BACKEND = {servers.redis.url!r}\n"
    host = Host(tmp_path / "shop", database, celery=JOINED, settings=settings, people__tasks=TASKS)
    cluster.root, cluster.env = host.folder, {**host.env, "CELERY_BROKER_URL": servers.redis.url}
    cluster.start("all", [sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "2", "-Q", QUEUES])
    assert host.ask(WORKED, CELERY_BROKER_URL="") == ["Error", [2, 3], 0, 7, 1]
