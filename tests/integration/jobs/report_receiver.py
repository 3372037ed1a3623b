"""A report target: a real HTTP server in a thread, that answers what it is told to."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tests.integration.executions.deliveries.receiver import LOOPBACK, Received, receiver


@dataclass(frozen=True)
class Request:
    path: str
    authorization: str | None
    content_type: str | None
    body: Any


@dataclass
class Target:
    """`answers` by the last word of the path, which is the id of a task, else `answer`, each with these `headers`.
    `delay` is what each answer takes; one that `hangs` never comes. `meanwhile` is called before."""

    url: str
    headers: dict[str, str]
    requests: list[Request] = field(default_factory=list)
    answer: int = 200
    answers: dict[str, int] = field(default_factory=dict)
    delay: float = 0.0
    hangs: str = ""
    meanwhile: Callable[[Request], Any] = lambda _: None

    def asked(self) -> list[int]:
        """Of which tasks it has heard, in order."""
        return [int(one.path.rpartition("/")[2]) for one in self.requests]


@contextmanager
def target() -> Iterator[Target]:
    def answer_of(got: Received) -> int:
        its = got.headers
        request = Request(got.path, its.get("authorization"), its.get("content-type"), json.loads(got.body))
        told.requests.append(request)
        told.meanwhile(request)
        connection.close()
        word = got.path.rpartition("/")[2]
        server.ended.wait(60 if word == told.hangs else told.delay)
        return told.answers.get(word, told.answer)

    with receiver(answer_of=answer_of) as server:
        told = Target(f"http://{LOOPBACK}:{server.port}/service/notifications/tasks/", server.headers)
        yield told
