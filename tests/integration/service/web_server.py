"""The service behind a real socket, in threads of the test's process, with the database of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connections


class Handler(WSGIRequestHandler):
    """Keeps connections open, and writes no line for each request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_server() -> Iterator[str]:
    """Serve; the value is the address."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), Handler)
    server.set_app(WSGIHandler())
    server.daemon_threads = False

    def serve() -> None:
        server.serve_forever(poll_interval=0.02)
        connections.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
