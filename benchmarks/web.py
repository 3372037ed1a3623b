"""The web process as `make up` runs it, on the servers of the bench, and connections to it."""

import http.client
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import BenchError
from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.ports import LOOPBACK, choose_port
from harbor_refresh.local.process import kill_tree, spawn, tail
from harbor_refresh.local.services import services

START_SECONDS = 60
APPLICATION = "harbor_refresh.wsgi:application"
TIMED = "benchmarks.timed_wsgi:application"
TIMING = re.compile(r"app;dur=([\d.]+), sql;desc=(\d+)")


@dataclass(frozen=True)
class Answer:
    """An answer, the milliseconds that the server took for it, and its SQL statements."""

    body: bytes
    milliseconds: float
    statements: int


class Connection:
    """A connection that stays open. An answer that is no success is an error of the bench."""

    def __init__(self, port: int, token: str) -> None:
        self._http = http.client.HTTPConnection(LOOPBACK, port, timeout=120)
        # production redirects to HTTPS what no proxy has received over it
        self._headers = {"Authorization": f"Bearer {token}", "X-Forwarded-Proto": "https"}

    def ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        self._http.request(method, f"/api/v1{path}", body, {**self._headers, "Content-Type": "application/json"})
        response = self._http.getresponse()
        text = response.read()
        if response.status >= 300:
            raise BenchError(f"{method} {path} was answered with {response.status}: {text[:300]!r}")
        timing = TIMING.search(response.headers.get("Server-Timing", ""))
        milliseconds, statements = timing.groups() if timing else ("nan", "0")
        return Answer(text, float(milliseconds), int(statements))

    def get(self, path: str) -> tuple[Any, Answer]:
        answer = self.ask("GET", path)
        return json.loads(answer.body), answer

    def close(self) -> None:
        self._http.close()


@contextmanager
def web(servers: Servers) -> Iterator[int]:
    """Yield the port of gunicorn with the arguments of `make up` (2 processes), serving the timed application."""
    port = choose_port()
    words = [word.replace(APPLICATION, TIMED) for word in services(port, 0)[0].arguments]
    with serving(servers, port, words, REFRESH_API_REQUESTS_PER_MINUTE="0", LOG_LEVEL="ERROR"):
        yield port


@contextmanager
def serving(servers: Servers, port: int, words: Sequence[str], **environment: str) -> Iterator[int]:
    """Run a web process with these words for Python, and wait until it answers on its port. Yields its id."""
    log = servers.directory / "web.log"
    environ = servers.environ | environment
    process = spawn([sys.executable, *words], log=log, cwd=ROOT, env=environ)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"The web process does not answer:\n{tail(log)}")
            time.sleep(0.1)
        yield process.pid
    except OSError as exc:
        raise BenchError(f"The web process gave no answer ({exc}):\n{tail(log)}") from exc
    finally:
        kill_tree(process)


def _answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
        connection.request("GET", "/api/v1/queue", headers={"X-Forwarded-Proto": "https"})
        return connection.getresponse().status == 401
    except OSError:
        return False
    finally:
        connection.close()
