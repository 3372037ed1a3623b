"""A real HTTP server that records requests with reports, and answers as it is told; else as the service does."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.serving import serving

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Told:
    """An answer that is told beforehand."""

    status: int
    body: bytes = b"<html>"
    kind: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Recorder:
    """`batches`: the reports of each request that was answered with results. `times`: when each request came.
    `answers`: those for the next requests. `refused`: task ids that are refused one by one."""

    url: str = ""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    answers: deque[Told] = field(default_factory=deque)
    always: Told | None = None
    refused: set[int] = field(default_factory=set)
    #: A task whose report makes the service refuse every report of its request.
    poison: int = -1
    is_asked: int = 0

    def task_ids(self) -> list[int]:
        return [one["task_id"] for batch in self.batches for one in batch]

    def answer(self, path: str, body: Any) -> Told:
        self.times.append(time.monotonic())
        self.is_asked += 1
        if self.answers:
            return self.answers.popleft()
        if self.always:
            return self.always
        reports = body["reports"]
        if any(one["task_id"] == self.poison for one in reports):
            problem = {"title": "The request is not as described", "status": 422, "detail": "it is poison"}
            return Told(422, json.dumps(problem).encode(), PROBLEM)
        self.batches.append(reports)
        results = [
            {"position": place, "task_id": one["task_id"], "result": "applied", "reason": None}
            | ({"result": "refused", "reason": "there is no such task"} if one["task_id"] in self.refused else {})
            for place, one in enumerate(reports)
        ]
        return Told(200, json.dumps({"results": results}).encode(), "application/json")


@contextmanager
def recorder() -> Iterator[Recorder]:
    recorded = Recorder()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            with lock:
                told = recorded.answer(self.path, body)
            self.send_response(told.status)
            for name, value in {"Content-Type": told.kind, **told.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, *_: Any) -> None:
            """It records them itself."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    recorded.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield recorded
