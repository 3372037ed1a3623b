"""Any message, from any writer, in any queue of ours, is refused alone, and the job of a message ends.

A failed run names its seed: `SEED=5 .venv/bin/pytest tests/faults/test_messages_from_any_writer.py`.
"""

import base64
import json
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from redis import Redis

from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.broker.celery_queues import JOBS, QUEUES
from harbor_refresh.tasks.jobs import start
from tests.faults import jobs as team
from tests.faults import rubbish
from tests.faults.cluster import Cluster, Member
from tests.variants import variants
from tests.waiting import wait_for

SEED = int(os.environ.get("SEED", "1"))
#: A line of a refusal has at most these characters: those of a status message, and who and when.
LONGEST_LINE = 2_300


def push(redis: Redis, entries: Sequence[bytes]) -> None:
    """Push entries to every queue, among the messages that wait there."""
    chance = random.Random(SEED)
    with redis.pipeline() as pipe:
        for entry in entries:
            add = chance.choice((pipe.lpush, pipe.rpush))
            add(chance.choice(QUEUES), entry)
        pipe.execute()


def is_drained(redis: Redis) -> bool:
    return not any(redis.llen(queue) for queue in QUEUES) and not redis.hlen("unacked")


def ran(execution: Execution) -> bool:
    return not execution.tasks.exclude(status="Success").exists()


@pytest.mark.parametrize(
    "case", variants(("prefork", 300), *((pool, 10_000) for pool in ("prefork", "threads", "solo"))), ids=str
)
def test_any_message_is_refused_alone(case: tuple[str, int], worker: Callable[..., Member], redis: Redis) -> None:
    """Among those of jobs. The worker goes on, and logs each message once."""
    pool, count = case
    good = start("SCAN", jobs=[team.copy.s(f"good {number}") for number in range(20)])
    push(redis, list(rubbish.messages(SEED, count)))
    member = worker(pool=pool)

    def are_over() -> bool:
        return member.died() or (is_drained(redis) and ran(good))

    wait_for(are_over, f"the messages of seed {SEED} to be read", seconds=600, log=member.log)
    assert not member.died(), f"seed {SEED}: the worker has ended"
    text = member.text()
    assert "consumer: Connection to broker lost" not in text, f"seed {SEED}"
    refused = [line for line in text.splitlines() if rubbish.REFUSED.search(line)]
    received = [line for line in text.splitlines() if rubbish.RECEIVED.search(line)]
    assert refused
    assert received
    assert len(refused) + len(received) == count, f"seed {SEED}"
    assert max(map(len, refused)) <= LONGEST_LINE, f"seed {SEED}"


Message = dict[str, Any]
Change = Callable[[Message], None]

TOO_DEEP = "its message cannot be read: ValueError: more than 100 levels, one in the other"
NO_LIMIT = "takes a number of seconds, and got"
NO_MOMENT = "takes a moment, as a datetime or ISO 8601 text, and got"
NO_COUNT = "takes a whole number from 0 to 2,147,483,647, and got"
NO_PAYLOAD = "its message: takes a list of arguments, keywords and links, and got"
NO_LINKS = "its message: takes links of the names callbacks, errbacks, chain, chord, and got"
NO_NAME = "takes text, a number or a UUID, and got"


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


def does_not_tell(part: str) -> Change:
    return lambda message: message["headers"]["harbor_job"].pop(part)


def has(**parts: Any) -> Change:
    return lambda message: message.update({name.replace("_", "-"): value for name, value in parts.items()})


def has_property(**properties: Any) -> Change:
    return lambda message: message["properties"].update(properties)


def holds_bytes(body: bytes) -> Change:
    return has(body=base64.b64encode(body).decode())


def holds(body: Any) -> Change:
    return holds_bytes(json.dumps(body).encode())


#: A header of each message, and what the status message of its task says of it.
HEADERS: tuple[tuple[str, Any, str], ...] = (
    ("timelimit", ["abc", None], f"time_limit {NO_LIMIT} 'abc'"),
    ("timelimit", [5, "abc"], f"soft_time_limit {NO_LIMIT} 'abc'"),
    ("timelimit", [-5, None], f"time_limit {NO_LIMIT} -5"),
    ("timelimit", [float("nan"), None], f"time_limit {NO_LIMIT} nan"),
    ("timelimit", [1, 2, 3], "timelimit takes two limits, and got [1, 2, 3]"),
    ("expires", "abc", f"expires {NO_MOMENT} 'abc'"),
    ("expires", 5, f"expires {NO_MOMENT} 5"),
    ("expires", "", f"expires {NO_MOMENT} ''"),
    ("eta", "9999-12-31T23:59:59-10:00", f"eta {NO_MOMENT} '9999-12-31T23:59:59-10:00'"),
    ("eta", [1], f"eta {NO_MOMENT} [1]"),
    ("retries", "abc", f"retries {NO_COUNT} 'abc'"),
    ("retries", 10**400, f"retries {NO_COUNT} 10000"),
    ("root_id", [1], f"root_id {NO_NAME} [1]"),
    ("group", {"a": 1}, f"group {NO_NAME} {{'a': 1}}"),
    ("group_index", "abc", f"group_index {NO_COUNT} 'abc'"),
    ("argsrepr", [1], "argsrepr takes text, and got [1]"),
    ("stamped_headers", 5, "stamped_headers takes a list of text"),
    ("get", 5, "a header get would take the place"),
    ("harbor_handle", 1, "a header harbor_handle would take"),
    ("errbacks", [5], "errbacks takes a list of signatures, and got [5]"),
)
BODIES: tuple[tuple[Any, str], ...] = (
    (5, f"{NO_PAYLOAD} 5"),
    ({"args": []}, f"{NO_PAYLOAD} {{'args': []}}"),
    ([[], {}], f"{NO_PAYLOAD} [[], {{}}]"),
    ([deep(900), {}, {}], TOO_DEEP),
    (["abc", {}, {}], "its message: takes arguments in a list, and got 'abc'"),
    ([[], [], {}], "its message: takes keywords in a mapping, and got []"),
    ([[], {}, 5], f"{NO_LINKS} 5"),
    ([[], {}, {"errbacks": [5]}], "its message: errbacks takes a list of signatures, and got [5]"),
    ([[], {}, {"get": 5}], f"{NO_LINKS} {{'get': 5}}"),
)
#: What is wrong with each message, and how the status message of its task begins.
ENDED: dict[str, tuple[Change, str]] = {
    **{f"{name} {value!r}"[:60]: (says(**{name: value}), f"its message: {why}") for name, value, why in HEADERS},
    **{f"body {body!r}"[:60]: (holds(body), why) for body, why in BODIES},
    "a limit that stands on its task": (
        says(task="tests.badly_limited"),
        f"tests.badly_limited: time_limit {NO_LIMIT} 'abc'",
    ),
    "stamps without a mapping": (
        says(stamped_headers=["a"], stamps=[1]),
        "its message: stamps takes a mapping, and got [1]",
    ),
    "a header without an end": (says(origin=deep(900)), TOO_DEEP),
    "no body": (has(body=None), f"{NO_PAYLOAD} None"),
    "a body that is cut off": (holds_bytes(b'[["a"], {'), "its message cannot be read: DecodeError: "),
    "a body of 5,000 digits": (holds_bytes(b"1" * 5_000), "its message cannot be read: DecodeError: "),
    "a type that is a list": (has(content_type=[1]), "its message cannot be read: TypeError: unhashable type"),
    "a type that nothing reads": (has(content_type="abc"), "its message cannot be read: ContentDisallowed: "),
    "no type": (has(content_type=None), NO_PAYLOAD),
    "an encoding that is a number": (has(content_encoding=5), "its message cannot be read: AttributeError: "),
    "an answer to a place without an end": (has_property(reply_to=deep(900)), TOO_DEEP),
}
#: What a worker can do without.
DONE: dict[str, Change] = {
    "an answer to a mapping": has_property(reply_to={"a": 1}),
    "a correlation with a list": has_property(correlation_id=[1]),
    "a priority that is text": has_property(priority="abc"),
    "a language that is a number": says(lang=5),
    "no root": does_not_say("root_id"),
    "a word that no worker reads": tells(most="abc"),
    "other arguments than those of its row": holds([["x"], {"self": 1}, {}]),
    "limits that are not there": does_not_say("timelimit"),
    "a limit without an end": says(timelimit=[float("inf"), None]),
    "a parent that is a number": says(parent_id=5),
}
#: It names no job, or a run that is not to begin, so the job is sent again.
SENT_AGAIN: dict[str, Change] = {
    "an id that is a list": says(id=[1]),
    "no id": does_not_say("id"),
    "a task that is text": tells(task="abc"),
    "a task beyond all ids": tells(task=2**64),
    "a run that is text": tells(run="abc"),
    "a run that has not come": tells(run=7),
    "no run": does_not_tell("run"),
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
    cluster: Cluster, worker: Callable[..., Member], redis: Redis, pool: str
) -> None:
    changes = {what: change for what, (change, _) in ENDED.items()} | DONE | SENT_AGAIN
    bad = start("SCAN", jobs=[team.copy.s("bad") for _ in changes])
    good = start("SCAN", jobs=[team.copy.s("good") for _ in range(3)])
    what = changed(redis, changes, bad)
    cluster.beat()
    member = worker(concurrency=1, pool=pool)

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
