"""Random messages, as a program with access to the broker would push them to the list of a queue.

Each is made from a sound message by a few random changes, or is no message at all. The same seed makes the same
messages. A message that stays sound is for a task that may run, and for no later time.
"""

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any

from amqp import Message
from amqp.serialization import dumps

from harbor_refresh.tasks.broker.celery_queues import ROUTES

REFUSED = re.compile(r"Dropped (?:a message for the task|the message of job|an entry of the queue) ")
#: A message that is taken. The ids of our own are UUIDs; none of these has one.
RECEIVED = re.compile(r"celery\.worker\.strategy: Task .*\[(?![0-9a-f]{8}-[0-9a-f]{4}-[^]]*\]).*\] received")
#: The ids of these messages begin so.
ID = "rubbish-"
#: A sweep that was told a place waits for the end of every other sweep, so hundreds of them take an hour.
OURS = sorted(ROUTES.keys() - {"tasks.sweep"})
TASKS = [*OURS, "tests.copy", "tests.note_end", "tests.none", "celery.backend_cleanup", "celery.chord"]
HEADERS = (
    *("lang", "task", "id", "shadow", "eta", "expires", "group", "group_index", "retries", "timelimit"),
    *("root_id", "parent_id", "argsrepr", "kwargsrepr", "origin", "ignore_result", "replaced_task_nesting"),
    *("stamped_headers", "stamps", "headers", "callbacks", "errbacks", "chain", "chord", "compression"),
    *("harbor_job", "get", "update", "clear", "__init__", "__class__", "called_directly", "delivery_info"),
    *("hostname", "args", "kwargs", "utc"),
)
PROPERTIES = ("delivery_tag", "delivery_info", "body_encoding", "priority", "reply_to", "correlation_id", "type")
CONTENT_TYPES = (
    *("application/json", "application/x-python-serialize", "application/x-yaml", "text/plain", "", "a/b"),
)
ENCODINGS = ("utf-8", "binary", "utf-16", "rot13", "hex", "", "no-such", "us-ascii")
COMPRESSIONS = ("gzip", "zlib", "application/x-gzip", "bzip2", "no-such", "")
CHANGES = (
    *["a header"] * 3,
    *("no header", "limits", "its job", "a property", "no property", "its place", "a part", "no part", "its body"),
    *("its payload", "a link", "the first protocol", "its type", "a compression"),
)
MARKED = ("datetime", "date", "time", "decimal", "uuid", "bytes", "base64", "no-such")


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


def over_amqp(entry: bytes) -> Message:
    """The same message for RabbitMQ, without the headers and properties that AMQP has no type for."""
    try:
        envelope = json.loads(entry)
    except (ValueError, RecursionError):
        envelope = None
    if not isinstance(envelope, dict):
        return Message(entry)
    headers, properties = envelope.get("headers"), envelope.get("properties")
    said = properties if isinstance(properties, dict) else {}
    given = {name: said.get(name) for name in ("priority", "reply_to", "correlation_id", "type")}
    given |= {"content_type": envelope.get("content-type"), "content_encoding": envelope.get("content-encoding")}
    fields = {name: value for name, value in given.items() if _is_property(name, value)}
    told = headers if isinstance(headers, dict) else {}
    table = {name: value for name, value in told.items() if _is_of_amqp("F", {name: value})}
    return Message(_body(envelope.get("body")), application_headers=table, **fields)


def _is_property(name: str, value: Any) -> bool:
    if name == "priority":
        return isinstance(value, int) and 0 <= value < 256
    return isinstance(value, str) and len(value) < 80 and _is_of_amqp("s", value)


def _is_of_amqp(kind: str, value: Any) -> bool:
    try:
        return len(dumps(kind, (value,))) < 100_000
    except Exception:  # py-amqp raises of many kinds for a value that it cannot write
        return False


def _body(body: Any) -> bytes:
    try:
        return base64.b64decode(body)
    except (ValueError, TypeError):
        return json.dumps(body).encode()


def _message(chance: random.Random, number: int) -> bytes:
    if chance.random() < 0.1:
        return _no_envelope(chance)
    envelope = _sound(chance, number)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _change(chance, envelope)
    raw = json.dumps(envelope).encode()
    if chance.random() < 0.05:
        return raw[: chance.randrange(len(raw))]
    if chance.random() < 0.03:
        place = chance.randrange(len(raw))
        return raw[:place] + chance.randbytes(3) + raw[place:]
    return raw


NO_ENVELOPES = (
    *(b"", b"x", b"null", b"5", b"-Infinity", b'"text"', b"[]", b"[[], {}, null]", b"{}"),
    *(b"[" * 50_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"1" * 5_000),
    *(b'{"__type__": [1], "__value__": 2}', b'{"properties": {"delivery_tag": 5}}', b'{"properties": []}'),
)


def _no_envelope(chance: random.Random) -> bytes:
    marked = json.dumps({"__type__": chance.choice(MARKED), "__value__": _value(chance)}).encode()
    of_bytes = (chance.randbytes(chance.randrange(1, 60)), b"\x80\x04\x95" + chance.randbytes(20))
    return chance.choice((*NO_ENVELOPES, marked, *of_bytes))


def _sound(chance: random.Random, number: int) -> dict[str, Any]:
    job = f"{ID}{number}"
    nothing = dict.fromkeys(("shadow", "eta", "expires", "group", "parent_id"))
    words = {"lang": "py", "argsrepr": "()", "kwargsrepr": "{}", "origin": "somewhere"}
    headers = {**nothing, **words, "task": chance.choice(TASKS), "id": job, "root_id": job}
    headers |= {"retries": 0, "timelimit": [None, None]}
    if chance.random() < 0.2:  # of no job that exists
        headers["harbor_job"] = {"task": 10**12 + number, "run": 0}
    place = {"exchange": "", "routing_key": "harbor_refresh"}
    properties = {"correlation_id": job, "reply_to": job, "delivery_tag": job, "delivery_info": place}
    return {
        "body": _encoded([[], {}, dict.fromkeys(("callbacks", "errbacks", "chain", "chord"))]),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": properties | {"delivery_mode": 2, "priority": 0, "body_encoding": "base64"},
    }


def _encoded(body: Any) -> str:
    return base64.b64encode(body if isinstance(body, bytes) else json.dumps(body).encode()).decode()


NUMBERS = (0, -1, 5, 2**31, 2**70, 10**400, -0.5, float("nan"), float("inf"))
TEXTS = ("", "text", "\x00", "line\nline\r\x1b[2J", "\ud800", "x" * 3_000)
MOMENTS = ("2020-01-01T00:00:00", "9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+14:00")


def _value(chance: random.Random) -> Any:
    """Any value of JSON. No number is a moment or a limit that a worker would wait for."""
    marked = {"__type__": chance.choice(MARKED), "__value__": chance.choice(("x", 5, "2020-01-01T00:00:00", {}))}
    of_chance = (marked, "é" * chance.randrange(1, 9), deep(chance.choice((50, 150, 400, 800, 905, 915))))
    parts = ([], [1], ["a", None], {}, {"a": 1}, {"": {}}, {"task": "tests.none"}, [{"task": "tests.none"}])
    return chance.choice((None, True, *NUMBERS, *TEXTS, *MOMENTS, *parts, *of_chance))


def _change(chance: random.Random, envelope: dict[str, Any]) -> None:  # noqa: PLR0912  # a table
    """Change one thing. What is no mapping any more has no parts to change."""
    headers, properties = (_mapping(envelope.get(name)) for name in ("headers", "properties"))
    value = _value(chance)
    match chance.choice(CHANGES):
        case "a header":
            headers[chance.choice(HEADERS)] = value
        case "no header":
            headers.pop(chance.choice(HEADERS), None)
        case "limits":
            headers["timelimit"] = [value, _value(chance)]
        case "its job":
            _mapping(headers.get("harbor_job"))[chance.choice(("task", "run"))] = value
        case "a property":
            properties[chance.choice(PROPERTIES)] = value
        case "no property":
            properties.pop(chance.choice(PROPERTIES), None)
        case "its place":
            names = [name for name in ("exchange", "routing_key") if chance.random() < 0.7]
            properties["delivery_info"] = dict.fromkeys(names, value)
        case "a part":
            envelope[chance.choice((*envelope, "redelivered"))] = value
        case "no part":
            envelope.pop(chance.choice([*envelope]), None)
        case "its body":
            envelope["body"] = _encoded(chance.choice((value, chance.randbytes(chance.randrange(40)))))
        case "its payload":
            payload: list[Any] = [[], {}, {}]
            payload[chance.randrange(3)] = value
            envelope["body"] = _encoded(payload)
        case "a link":
            links = ("callbacks", "errbacks", "chain", "chord", "get", "harbor_handle", "id")
            envelope["body"] = _encoded([[], {}, {chance.choice(links): value}])
        case "the first protocol":
            body = {"task": headers.get("task"), "id": headers.get("id"), "args": [], "kwargs": {}}
            if chance.random() < 0.7:
                names = ["task", "args", "kwargs", "eta", "expires", "retries", "utc", "chord"]
                body[chance.choice(names)] = value
            envelope["body"] = _encoded(body)
            if chance.random() < 0.7:
                envelope["headers"] = {}
        case "its type":
            envelope["content-type"] = chance.choice(CONTENT_TYPES)
            envelope["content-encoding"] = chance.choice(ENCODINGS)
        case "a compression":
            headers["compression"] = chance.choice(COMPRESSIONS)
            if chance.random() < 0.5:
                envelope["body"] = _encoded(zlib.compress(b"[[], {}, {}]"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
