"""Whatever the message of a job holds, its worker lives, and the job ends."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults.cluster import Cluster
from tests.variants import variants
from tests.waiting import wait_for

Message = dict[str, Any]
Change = Callable[[Message], None]

TOO_DEEP = "its message cannot be read: ValueError: more than 100 levels, one in the other"
NO_LIMIT = "takes a number of seconds above 0 and at most 31,622,400 (a year), and got"
NO_MOMENT = "takes a moment, as a datetime or ISO 8601 text, and got"
NO_COUNT = "takes a whole number from 0 to 2,147,483,647, and got"
NO_PAYLOAD = "its message: takes a list of arguments, keywords and links, and got"
NO_LINKS = "its message: takes links of the names callbacks, errbacks, chain, chord, and got"


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def says(**headers: Any) -> Change:
    return lambda message: message["headers"].update(headers)


def does_not_say(header: str) -> Change:
    return lambda message: message["headers"].pop(header)


def tells(**parts: Any) -> Change:
    return lambda message: message["headers"]["harbor_job"].update(parts)


def has(**parts: Any) -> Change:
    return lambda message: message.update({name.replace("_", "-"): value for name, value in parts.items()})


def has_property(**properties: Any) -> Change:
    return lambda message: message["properties"].update(properties)


def holds_bytes(body: bytes) -> Change:
    return has(body=base64.b64encode(body).decode())


def holds(body: Any) -> Change:
    return holds_bytes(json.dumps(body).encode())


#: What is wrong with each message, and how the status message of its task begins: one of each rule of
#: tasks/jobs/messages/validation.py. test_messages_from_any_writer.py has others.
ENDED: dict[str, tuple[Change, str]] = {
    "a limit that is text": (says(timelimit=["abc", None]), f"its message: time_limit {NO_LIMIT} 'abc'"),
    "a limit that stands on its task": (
        says(task="tests.badly_limited"),
        f"tests.badly_limited: time_limit {NO_LIMIT} 'abc'",
    ),
    "three limits": (says(timelimit=[1, 2, 3]), "its message: timelimit takes two limits, and got [1, 2, 3]"),
    "an end that is text": (says(expires="abc"), f"its message: expires {NO_MOMENT} 'abc'"),
    "a start in 900 years": (
        says(eta="2926-01-01T00:00:00"),
        "its message: eta takes a moment at most a year from",
    ),
    "more tries than can be counted": (says(retries=10**400), f"its message: retries {NO_COUNT} 10000"),
    "a root that is a list": (says(root_id=[1]), "its message: root_id takes text, and got [1]"),
    "stamps that are a number": (says(stamped_headers=5), "its message: stamped_headers takes a list of text"),
    "a header in the place of the handle": (
        says(harbor_handle=1),
        "its message: a header harbor_handle would take",
    ),
    "a link among the headers": (says(errbacks=[5]), "its message: errbacks takes nothing, and got [5]"),
    "a header without an end": (says(origin=deep(900)), TOO_DEEP),
    "no body": (has(body=None), f"{NO_PAYLOAD} None"),
    "a body that is cut off": (holds_bytes(b'[["a"], {'), "its message cannot be read: DecodeError: "),
    "a body without an end": (holds([deep(900), {}, {}]), TOO_DEEP),
    "arguments that are text": (holds(["abc", {}, {}]), "its message: takes arguments in a list, and got 'abc'"),
    "keywords that are a list": (holds([[], [], {}]), "its message: takes keywords in a mapping, and got []"),
    "a link in the place of a method": (holds([[], {}, {"get": 5}]), f"{NO_LINKS} {{'get': 5}}"),
    "a type that nothing reads": (has(content_type="abc"), "its message cannot be read: ContentDisallowed: "),
    "an encoding that is a number": (has(content_encoding=5), "its message cannot be read: AttributeError: "),
    "an answer to a place without an end": (has_property(reply_to=deep(900)), TOO_DEEP),
}
#: What a worker can do without.
DONE: dict[str, Change] = {
    "a correlation with a list": has_property(correlation_id=[1]),
    "no root": does_not_say("root_id"),
    "a word that no worker reads": tells(most="abc"),
    "other arguments than those of its row": holds([["x"], {"self": 1}, {}]),
}
#: It names no job, or a run that is not to begin, so the job is sent again.
SENT_AGAIN: dict[str, Change] = {
    "an id that is a list": says(id=[1]),
    "no id": does_not_say("id"),
    "a task beyond all ids": tells(task=2**64),
    "a task that is not there": tells(task=2**62),
    "a run below zero": tells(run=-1),
    "a run that has not come": tells(run=7),
    "a header that is a list": says(harbor_job=[1]),
}


def said(what: str) -> str:
    return ENDED[what][1] if what in ENDED else ""


def changed(redis: Redis, changes: dict[str, Change], execution: Execution) -> dict[str, str]:
    """Change the messages of an execution where they wait, each in its own way. What is wrong, by job."""
    waiting = [json.loads(one) for one in redis.lrange(JOBS, 0, -1)]
    mine = set(execution.tasks.values_list("job_id", flat=True))
    redis.delete(JOBS)
    what: dict[str, str] = {}
    left = iter(changes.items())
    for message in reversed(waiting):
        if (job := message["headers"]["id"]) in mine:
            what[job], change = next(left)
            change(message)
        redis.lpush(JOBS, json.dumps(message))
    assert not list(left)
    return what


@pytest.mark.slow
@pytest.mark.parametrize("pool", variants("prefork", "threads", "solo"))
def test_a_worker_ends_the_job_of_a_message_it_cannot_use_and_goes_on(
    cluster: Cluster, redis: Redis, tmp_path: Path, pool: str
) -> None:
    changes = {what: change for what, (change, _) in ENDED.items()} | DONE | SENT_AGAIN
    bad = start("SCAN", jobs=[team.copy.s("bad") for _ in changes])
    good = start("SCAN", jobs=[team.copy.s("good") for _ in range(3)])
    what = changed(redis, changes, bad)

    log = tmp_path / "jobs.txt"
    log.touch()
    cluster.beat()
    member = cluster.worker(concurrency=1, pool=pool, include=["tests.faults.jobs"], JOBS_LOG=str(log))

    def is_over() -> bool:
        ended = Task.objects.filter(execution__in=[bad, good], status_code=3).count()
        is_drained = not redis.llen(JOBS) and not redis.hlen("unacked")
        return member.died() or (ended == len(changes) + 3 and is_drained)

    wait_for(is_over, "each job to end, and each message", log=member.log)
    assert not member.died()
    assert "exited with" not in member.text(), "a process of the pool has ended"
    found = {
        what[job]: as_it_ended for job, *as_it_ended in bad.tasks.values_list("job_id", "status", "status_message")
    }
    assert {one: (status, why[: len(said(one))]) for one, (status, why) in found.items()} == {
        **{one: ("Error", said(one)) for one in ENDED},
        **dict.fromkeys(DONE | SENT_AGAIN, ("Success", "")),
    }
    assert set(good.tasks.values_list("status", flat=True)) == {"Success"}
