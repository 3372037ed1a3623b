"""Random messages, as a program with access to the broker would push them to the list of a queue.

Each is a sound message of which a few random parts have another value, are left out, or are new; or it is no
message at all. The same seed makes the same messages. A message that stays sound is for a task that may run, and
for no later time.
"""

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any

from harbor_refresh.tasks.broker.celery_queues import ROUTES

REFUSED = re.compile(r"Dropped (?:a message for the task|the message of job|an entry of the queue) ")
#: A message that is taken. The ids of our own are UUIDs; none of these has one.
RECEIVED = re.compile(r"celery\.worker\.strategy: Task .*\[(?![0-9a-f]{8}-[0-9a-f]{4}-[^]]*\]).*\] received")
#: A sweep that was told a place waits for the end of every other sweep, so hundreds of them take an hour.
OURS = sorted(ROUTES.keys() - {"tasks.sweep"})
TASKS = [*OURS, "tests.copy", "tests.note_end", "tests.none", "celery.backend_cleanup", "celery.chord"]
#: What a sound message does not have, or what is another thing at another place.
NEW = (
    *("callbacks", "errbacks", "chain", "chord", "stamps", "stamped_headers", "headers", "compression", "args"),
    *("get", "update", "clear", "__init__", "__class__", "called_directly", "harbor_handle", "harbor_job", "utc"),
    *("delivery_info", "hostname", "redelivered", "body_encoding", "priority", "task", "id", "eta", "expires"),
)
MARKED = ("datetime", "date", "time", "decimal", "uuid", "bytes", "base64", "no-such")
#: What a part may say of the form of its message.
FORMS = (
    *("application/x-python-serialize", "application/x-yaml", "text/plain", "a/b"),
    *("utf-16", "rot13", "hex", "binary", "us-ascii", "gzip", "zlib", "bzip2", "no-such"),
)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def messages(seed: int, count: int) -> Iterator[bytes]:
    """Yield random messages, as their bytes in the list."""
    chance = random.Random(seed)
    for number in range(count):
        yield _message(chance, number)


def _message(chance: random.Random, number: int) -> bytes:
    if chance.random() < 0.1:
        return _no_envelope(chance)
    envelope = _sound(chance, number)
    places = [*_places(envelope)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _change(chance, *chance.choice(places))
    if "body" in envelope and chance.random() < 0.95:
        body = json.dumps(envelope["body"]).encode()
        envelope["body"] = base64.b64encode(zlib.compress(body) if chance.random() < 0.03 else body).decode()
    raw = json.dumps(envelope).encode()
    cut = chance.randrange(len(raw)) if chance.random() < 0.05 else len(raw)
    return raw[:cut] + (chance.randbytes(3) + raw[cut:] if chance.random() < 0.03 else b"")


def _no_envelope(chance: random.Random) -> bytes:
    return chance.choice(
        (
            *(b"", b"x", b"null", b"5", b"-Infinity", b'"text"', b"[]", b"[[], {}, null]", b"{}"),
            *(b"[" * 50_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"1" * 5_000),
            *(b'{"__type__": [1], "__value__": 2}', b'{"properties": {"delivery_tag": 5}}', b'{"properties": []}'),
            json.dumps({"__type__": chance.choice(MARKED), "__value__": _value(chance)}).encode(),
            *(chance.randbytes(chance.randrange(1, 60)), b"\x80\x04\x95" + chance.randbytes(20)),
        )
    )


def _sound(chance: random.Random, number: int) -> dict[str, Any]:
    """Its body is not encoded yet. One in ten is of the first protocol."""
    name, job = chance.choice(TASKS), f"rubbish-{number}"
    headers: dict[str, Any] = {
        **{"lang": "py", "task": name, "id": job, "root_id": job, "origin": "somewhere", "retries": 0},
        **dict.fromkeys(("shadow", "eta", "expires", "group", "parent_id", "group_index", "ignore_result")),
        **{"timelimit": [None, None], "argsrepr": "()", "kwargsrepr": "{}"},
    }
    body: Any = [[], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
    if chance.random() < 0.1:
        body = {"task": name, "id": job, "args": [], "kwargs": {}, "eta": None, "expires": None, "retries": 0}
        headers = {}
    elif chance.random() < 0.2:  # of no job that exists
        headers["harbor_job"] = {"task": 10**12 + number, "run": 0}
    properties = {
        **{"correlation_id": job, "reply_to": job, "delivery_mode": 2, "priority": 0, "body_encoding": "base64"},
        **{"delivery_info": {"exchange": "", "routing_key": "harbor_refresh"}, "delivery_tag": job},
    }
    return {
        "body": body,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": properties,
    }


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of a message, as what holds it and its name there."""
    for name, value in part.items() if isinstance(part, dict) else enumerate(part):
        yield part, name
        if isinstance(value, dict | list):
            yield from _places(value)


def _change(chance: random.Random, holder: Any, name: Any) -> None:
    what = chance.random() if isinstance(holder, dict) else 1.0
    if what < 0.2:
        holder.pop(name, None)
    elif what < 0.5:
        holder[chance.choice(NEW)] = _value(chance)
    else:
        holder[name] = _value(chance)


def _value(chance: random.Random) -> Any:
    """Any value of JSON. No number is a moment or a limit that a worker would wait for."""
    marked = {"__type__": chance.choice(MARKED), "__value__": chance.choice(("x", 5, "2020-01-01T00:00:00", {}))}
    return chance.choice(
        (
            *(None, True, 0, -1, 5, 2**31, 2**70, 10**400, -0.5, float("nan"), float("inf")),
            *("", "text", "\x00", "line\nline\r\x1b[2J", "\ud800", "x" * 3_000, "é" * chance.randrange(1, 9)),
            *([], [1], ["a", None], {}, {"a": 1}, {"": {}}, {"task": "tests.none"}, [{"task": "tests.none"}]),
            *(marked, chance.choice(FORMS), deep(chance.choice((50, 150, 400, 800, 905, 915)))),
            *("2020-01-01T00:00:00", "9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+14:00"),
        )
    )
