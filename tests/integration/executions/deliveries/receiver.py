"""A receiver of webhooks: a real server on a loopback address, that answers as it is told."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.serving import serving

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    #: The port of the sender, which names the connection.
    port: int

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """`status` and `headers` are its answers. `manner`: it answers, hangs (says nothing), drips (a byte of its
    answer's head a second) or pours (a body without end)."""

    address: str = LOOPBACK
    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    manner: str = "answers"
    received: list[Received] = field(default_factory=list)
    answer_of: Callable[[Received], int] | None = None
    tls: ssl.SSLContext | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}/hook"

    def ids(self) -> list[str]:
        return [one.id for one in list(self.received)]


@contextmanager
def receiver(address: str = LOOPBACK, **told: object) -> Iterator[Receiver]:
    one = Receiver(address, **told)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Received(self.path, headers, body, self.client_address[1])
            one.received.append(got)
            if one.manner == "hangs":
                one.ended.wait(60)
                self.close_connection = True
                return
            if one.manner == "drips":
                self.close_connection = True
                for byte in b"HTTP/1.1 200 OK\r\n" * 10:
                    if one.ended.wait(1):
                        return
                    self.wfile.write(bytes([byte]))
            self.send_response(one.answer_of(got) if one.answer_of else one.status)
            for name, value in one.headers.items():
                self.send_header(name, value)
            if one.manner == "pours":
                self.close_connection = True
                self.end_headers()
                with suppress(OSError):
                    while not one.ended.is_set():
                        self.wfile.write(b"x" * 65_536)
                return
            self.send_header("Content-Length", str(len(one.body)))
            self.end_headers()
            self.wfile.write(one.body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 200

        def handle_error(self, *_: object) -> None:
            """A sender that gave up is no error."""

    server = Server((address, 0), Handler)
    one.port = server.server_port
    if one.tls:
        server.socket = one.tls.wrap_socket(server.socket, server_side=True)
    with serving(server):
        try:
            yield one
        finally:
            one.ended.set()


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])
