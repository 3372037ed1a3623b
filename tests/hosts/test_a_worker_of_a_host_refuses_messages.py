"""A worker of a project that calls `connect(app)` refuses a message alone, with Celery's own consumer."""

import base64
import json
from pathlib import Path
from typing import Any

from redis import Redis

from tests import servers
from tests.hosts.host import Host
from tests.hosts.test_a_celery_app_is_joined import JOINED

QUEUE = "shop.default"
TASKS = """
from celery import shared_task
from celery.worker import state


@shared_task(name="shop.pack")
def pack():
    print("packed")


@shared_task(name="shop.last")
def last():
    state.should_stop = 0
"""
#: A worker that ends by its last message, or by an error.
WORKER = """
from celery import current_app as app

app.send_task("shop.last", queue="shop.default")
app.Worker(pool="solo", loglevel="INFO", quiet=True, without_gossip=True, without_mingle=True).start()
"""


def message(task: Any = "shop.pack", body: bytes = b"[[], {}, {}]", **headers: Any) -> bytes:
    place = {"exchange": "", "routing_key": QUEUE}
    envelope = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": task, "id": "an id", **headers},
        "properties": {"delivery_tag": "a tag", "body_encoding": "base64", "delivery_info": place},
    }
    return json.dumps(envelope).encode()


REFUSED: dict[str, tuple[bytes, str]] = {
    "a body that is null": (
        message(body=b"null"),
        "Dropped a message for the task 'shop.pack': its message: takes a",
    ),
    "a body that is binary": (
        message(body=b"x"),
        "Dropped a message for the task 'shop.pack': its message cannot be read: De",
    ),
    "a task that is a list": (message(task=[1]), "Dropped a message for the task [1]: its message names no task"),
    "an unknown task": (
        message(task="no.task"),
        "Dropped a message for the task 'no.task': the worker that got it knows no",
    ),
    "limits that are text": (message(timelimit=["a", None]), "time_limit takes a number of seconds, and got 'a'"),
    "links that are numbers": (message(errbacks=[5]), "errbacks takes a list of signatures, and got [5]"),
    "a link that lacks its arguments": (
        message(errbacks=[{"task": "a.task"}]),
        "errbacks takes a list of signatures, and got [{'task': 'a.task'}]",
    ),
    "an unknown compression": (message(compression="x"), "its message cannot be read: KeyError: 'x'"),
    "no JSON": (b"{", "it is no JSON: JSONDecodeError"),
    "no envelope": (b"{}", "Dropped an entry of the queue 'shop.default', because it is no message: KeyError"),
}


SOUND = {
    "a number for an id": message(id=5),
    "an end in 2,000 years": message(expires="4000-01-01T00:00:00"),
    "no limit": message(timelimit=[float("inf"), 0]),
    "a link": message(body=b'[[], {}, {"callbacks": [{"task": "shop.none", "args": [], "options": {}}]}]'),
    "the first protocol": message(
        body=b'{"task": "shop.pack", "id": "x", "args": [], "kwargs": {}}', ignore_result=1
    ),
}


def test_each_is_refused_alone_and_logged_once_and_sound_ones_run(
    database: str, tmp_path: Path, redis: Redis
) -> None:
    redis.lpush(QUEUE, *(entry for entry, _ in REFUSED.values()), *SOUND.values())
    host = Host(tmp_path, database, celery=JOINED, people__tasks=TASKS)
    program = "import django\ndjango.setup()\n" + WORKER
    done = host.run("-u", "-c", program, CELERY_BROKER_URL=servers.redis.url)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("] packed") == len(SOUND), done.stderr
    told = {what: done.stderr.count(line) for what, (_, line) in REFUSED.items()}
    assert told == dict.fromkeys(REFUSED, 1), done.stderr
    assert done.stderr.count("Dropped") == len(REFUSED)
    assert not redis.llen(QUEUE)
    assert not redis.hlen("unacked")
