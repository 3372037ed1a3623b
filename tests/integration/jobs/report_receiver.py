"""A report target: a real HTTP server in a thread, that answers what it is told to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.db import connection

from tests.serving import serving

OK = 200


@dataclass(frozen=True)
class Request:
    path: str
    authorization: str | None
    content_type: str | None
    body: Any


@dataclass
class Target:
    """`answers` by the last word of the path, which is the id of a task; a redirect points to `location`. `delay`
    is what each answer takes; one that `hangs` never comes. `meanwhile` is called before the answer."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    delay: float = 0.0
    hangs: str = ""
    location: str = ""
    meanwhile: Callable[[Request], Any] = lambda _: None
    ended: threading.Event = field(default_factory=threading.Event)

    def asked(self) -> list[int]:
        """Of which tasks it has heard, in order."""
        return [int(one.path.rpartition("/")[2]) for one in self.requests]


@contextmanager
def target() -> Iterator[Target]:
    told = Target()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = self.headers
            request = Request(self.path, headers.get("Authorization"), headers.get("Content-Type"), body)
            told.requests.append(request)
            told.meanwhile(request)
            connection.close()
            word = self.path.rpartition("/")[2]
            if told.ended.wait(60 if word == told.hangs else told.delay):
                self.close_connection = True
                return
            self.send_response(told.answers.get(word, OK))
            if told.location:
                self.send_header("Location", told.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = False

    server = Server(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}/service/notifications/tasks/"
    with serving(server):
        try:
            yield told
        finally:
            told.ended.set()
