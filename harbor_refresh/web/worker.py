"""Gunicorn's worker for the web process: a connection has no thread until its whole request has arrived.

Waitress receives requests and sends answers in one loop, so a client that is silent or slow takes a socket and no
thread. Gunicorn's own threads wait for such clients: eight silent ones blocked reports and health checks. Gunicorn
keeps the processes, their signals, the options and the log.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ThreadedTaskDispatcher

#: Seconds between two looks at whether the process is to end.
LOOK_SECONDS = 0.5
#: Seconds that a stopping process keeps its connections, for requests that are under way to it.
LINGER = 1.0
#: Bytes of a body, and of an answer, that wait in memory. The rest is in a temporary file.
IN_MEMORY = 2**18
#: Seconds after which a connection is closed that neither sends nor reads.
SILENCE = 30


class Threads(ThreadedTaskDispatcher):
    """The threads of requests. /healthz has its own, because all others may wait for a PostgreSQL that hangs, and
    a restart of this process would not help."""

    def __init__(self, count: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.set_thread_count(count)  # type: ignore[no-untyped-call]
        self._of_health = ThreadedTaskDispatcher()  # type: ignore[no-untyped-call]
        self._of_health.set_thread_count(1)  # type: ignore[no-untyped-call]

    def add_task(self, task: HTTPChannel) -> None:
        is_health = getattr(task.requests[0], "path", "") == "/healthz"  # an unreadable request has no path
        (self._of_health.add_task if is_health else super().add_task)(task)  # type: ignore[no-untyped-call]


class WebWorker(Worker):
    def run(self) -> None:
        for listener in self.sockets:
            listener.setblocking(False)
        connections: dict[int, Any] = {}
        create_server(  # type: ignore[no-untyped-call]
            self.answer,
            map=connections,
            sockets=[one.sock for one in self.sockets],
            _dispatcher=Threads(self.cfg.threads),
            backlog=self.cfg.backlog,
            connection_limit=self.cfg.worker_connections,
            channel_timeout=SILENCE,
            cleanup_interval=5,
            inbuf_overflow=IN_MEMORY,
            outbuf_overflow=IN_MEMORY,
            # Django answers a body that is a little too large with a problem
            max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 2**20,
            clear_untrusted_proxy_headers=False,  # Django decides which it believes
            log_socket_errors=False,
            ident=None,
        )
        while self.alive and os.getppid() == self.ppid:
            self.serve_once(connections)
        for number, one in list(connections.items()):
            if one.accepting:
                del connections[number]
                one.socket.close()
        stopped = time.monotonic()
        while (waited := time.monotonic() - stopped) < self.cfg.graceful_timeout:
            channels = [one for one in connections.values() if isinstance(one, HTTPChannel)]
            if waited > LINGER and not any(one.requests or one.total_outbufs_len for one in channels):
                break
            self.serve_once(connections)

    def serve_once(self, connections: dict[int, Any]) -> None:
        self.notify()  # type: ignore[no-untyped-call]
        wasyncore.loop(timeout=LOOK_SECONDS, use_poll=True, map=connections, count=1)  # type: ignore[no-untyped-call]

    def answer(self, request: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        """Run the application, and write the access line when its answer has been sent or given up."""
        begin = datetime.now()
        answered = SimpleNamespace(status="", headers=[], sent=0)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            answered.status, answered.headers = status, headers
            return start_response(status, headers, exc_info)

        parts: Iterable[bytes] = self.wsgi(request, start)
        try:
            for part in parts if request["REQUEST_METHOD"] != "HEAD" else ():  # Django has made a body
                answered.sent += len(part)
                yield part
        finally:
            if hasattr(parts, "close"):
                parts.close()
            named = {**request, "RAW_URI": request.get("REQUEST_URI", "")}  # as gunicorn's line names it
            self.log.access(answered, [], named, datetime.now() - begin)
