"""`python -m benchmarks.receivers`: receivers of webhooks in a process of their own, as cheap as Python has them.

It prints the ports of two that answer 204 and of one that hangs: it reads, and never answers. It ends with its
standard input.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.errors import BenchError
from harbor_refresh.local.process import kill_tree

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Answering(asyncio.Protocol):
    """Answers each request when its body is complete."""

    answers = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, separator, body = self._read.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._read = body[length:]
            if self.answers:
                self._transport.write(ANSWER)  # type: ignore[attr-defined]


class Hanging(Answering):
    answers = False


async def serve() -> None:
    loop = asyncio.get_running_loop()
    listening = [await loop.create_server(kind, "127.0.0.1", 0) for kind in (Answering, Answering, Hanging)]
    sys.stdout.write(" ".join(str(one.sockets[0].getsockname()[1]) for one in listening) + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def receivers() -> Iterator[list[str]]:
    """Start them; the value is their addresses, that of the hanging one last."""
    command = [sys.executable, "-m", "benchmarks.receivers"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ports = process.stdout.readline().split() if process.stdout else []
        if len(ports) != 3:
            raise BenchError("The receivers of webhooks did not start.")
        yield [f"http://127.0.0.1:{port}/hook" for port in ports]
    finally:
        kill_tree(process)  # type: ignore[arg-type]
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


if __name__ == "__main__":
    asyncio.run(serve())
