"""The formats in which one process writes what another reads: keys and tokens in Redis, and messages.

formats.json holds one of each. If this test fails, a worker of another release may not understand what this
release writes. A release that changes a format keeps these rules:

1. A new meaning gets a new name: a changed set or token a new key (`queue:v3`), a changed message a new name of
   its Celery task. A new field may keep the old name if each reader accepts its absence.
2. The release that brings a format reads the old and the new one and writes the old one. The next release writes
   the new one. So each of two neighbouring releases reads what the other writes.
3. When a release begins to write the new format, its ticks also move the rest of the old one, page by page. The
   changelog says from which release on this ends.
4. A new column has a default in the database, because workers of the old release still write rows.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.celery_tasks import publish as publish_claims
from harbor_refresh.tasks.celery_tasks import run_handlers, sweep
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.schedule import ROWS
from harbor_refresh.tasks.queue.claim import Claim
from harbor_refresh.tasks.queue.members import Token, member, readable
from tests.integration.redis_state import Redis, queue_with_clock, whole_redis

GOLDEN = Path(__file__).with_name("formats.json")
CLAIM = Claim("waiting@host-1-abc", "1000000000000", ("7:SCAN_ALL", "8:a vendor"))
#: As pick.sql returns it: task, job, run, name, options, retries, arguments for people.
JOB = (7, "a-job", 1, "a.job", JOBS, json.dumps({"priority": 3}), 2, '[1, "x"]', "{}")
#: What differs with each message, process and machine.
CHANGES = {"delivery_tag", "origin", "reply_to", "correlation_id", "expires", "eta"}
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def without_what_changes(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: f"({name})" if name in CHANGES and one is not None else without_what_changes(one)
                for name, one in value.items()
            }
        case list():
            return [without_what_changes(one) for one in value]
        case str():
            return ID.sub("(id)", value)
    return value


def message(redis: Redis) -> Any:
    """The one message that waits in the broker, as it is stored there, with its body in clear."""
    queues = [key for key in redis.keys("harbor_refresh*") if redis.type(key) == b"list"]
    (raw,) = (one for key in queues for one in redis.lrange(key, 0, -1))
    stored = json.loads(raw)
    assert stored["properties"]["body_encoding"] == "base64"
    stored["body"] = json.loads(base64.b64decode(stored["body"]))
    redis.delete(*queues)
    (queue,) = {key.decode() for key in queues}
    assert queue.startswith((TICKS, WORK, JOBS, DELIVERIES))
    return {"queue": queue.replace("\x06\x16", "/"), **without_what_changes(stored)}


def messages(redis: Redis) -> dict[str, Any]:
    found = {}
    for name in sorted({row.task for row in ROWS}):
        wakeup.send(name)
        found[name] = message(redis)
    sweep.go_on("executions", [7, "a place"])
    found["tasks.sweep, the rest of one"] = message(redis)
    run_handlers.delay(3)
    found["tasks.run_handlers"] = message(redis)
    publish_claims([CLAIM])
    found["tasks.refresh_executions"] = message(redis)
    sender._publish([JOB])
    found["a job"] = message(redis)
    return found


def keys(redis: Redis) -> dict[str, Any]:
    """Every key that the queue writes, after one execution has met each of its verbs."""
    redis.flushall()
    conf: dict[str, Any] = {"node_ttl": 10.0, "rest": 2.0, "max_attempts": 5}
    queue, clock = queue_with_clock(redis, **conf)
    queue.heartbeat("host-1-abc")
    for members in (["7:SCAN_ALL"], ["8:a vendor"]):
        queue.mark(members)
        taken = queue.claim("host-1-abc", 1).claim
    queue.take_over(taken, "host-2-def")
    clock.move(1)
    queue.mark(["9:REPLICATION"])
    queue.fail(queue.take_over(queue.claim("host-1-abc", 1).claim, "host-2-def"))
    for _ in range(2):
        queue.mark(["10:REPLICATION"])
    queue.leave("host-3-ghi")
    queue.pause()
    state = whole_redis(redis, presence=True, observed=True)
    state["presence"]["server"] = "(server)"
    return {name: sorted(value) if isinstance(value, set) else value for name, value in sorted(state.items())}


@pytest.mark.usefixtures("database")
def test_what_other_processes_read_is_written_as_it_was(redis: Redis, tmp_path: Path) -> None:
    written = {"keys": keys(redis), "messages": messages(redis)}
    text = json.dumps(written, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    new = tmp_path / "formats.json"
    new.write_text(text, encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert json.loads(text) == golden, f"if this is meant, follow the rules above, and copy {new}"


def test_what_was_written_is_read() -> None:
    """As a worker of this release reads what one of the last release has left."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [readable(one.encode()) for one in golden["keys"]["queue:v2"]] == golden["keys"]["queue:v2"]
    tokens = [Token.read(one.encode()) for one in golden["keys"]["processing"]]
    assert [(token.member, token.node, token.is_waiting) for token in tokens if token] == [
        (member(7, "SCAN_ALL"), "host-1-abc", True),
        (member(8, "a vendor"), "host-2-def", False),
    ]
    (args, _, _) = golden["messages"]["tasks.refresh_executions"]["body"]
    assert Claim.from_message(args[0]) == CLAIM
