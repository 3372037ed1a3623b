"""A fixed address for servers that change: a process that passes bytes on.

    python -m tests.soak.proxy redis postgres link

prints the port of each name in one line of JSON, then reads commands from its input until the input ends:

    to NAME PORT     new connections go to this port; open connections stay where they are
    hold NAME        hold back what comes from the server, like a slow line
    pass NAME        pass it on again
    cut NAME         end all open connections at once, with what is on its way in them
"""

import asyncio
import json
import subprocess
import sys
import threading
from contextlib import suppress

HOST = "127.0.0.1"
CHUNK = 65_536


class Way:
    """One address, and the port to which it leads."""

    def __init__(self) -> None:
        self.target = 0
        self.may_pass = asyncio.Event()
        self.may_pass.set()
        self._open: set[asyncio.StreamWriter] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._open |= both
        try:
            await asyncio.gather(
                self._pump(reader, far_writer, None), self._pump(far_reader, writer, self.may_pass)
            )
        finally:
            self._open -= both

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    @staticmethod
    async def _pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event | None
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if may_pass:
                    await may_pass.wait()
                writer.write(data)
                await writer.drain()
        with suppress(OSError):
            writer.close()


async def serve(names: list[str]) -> None:
    ways = {name: Way() for name in names}
    servers = {name: await asyncio.start_server(way.connect, HOST, 0) for name, way in ways.items()}
    sys.stdout.write(json.dumps({name: one.sockets[0].getsockname()[1] for name, one in servers.items()}) + "\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        match line.split():
            case ["to", name, port]:
                ways[name].target = int(port)
            case ["hold", name]:
                ways[name].may_pass.clear()
            case ["pass", name]:
                ways[name].may_pass.set()
            case ["cut", name]:
                ways[name].cut()
        sys.stdout.write("done\n")
        sys.stdout.flush()


class Proxy:
    """The proxy's process, as its parent sees it. It ends when its input ends, and so when the parent ends."""

    def __init__(self, *names: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.proxy", *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self.ports: dict[str, int] = json.loads(self._answer())

    def lead(self, name: str, port: int) -> None:
        self._say(f"to {name} {port}")

    def hold(self, name: str) -> None:
        self._say(f"hold {name}")

    def release(self, name: str) -> None:
        self._say(f"pass {name}")

    def cut(self, name: str) -> None:
        self._say(f"cut {name}")

    def end(self) -> None:
        with self._process:  # closes its pipes and waits for it
            self._process.kill()

    def _say(self, command: str) -> None:
        with self._lock:
            assert self._process.stdin
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            self._answer()

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the proxy has ended"
        return line


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1:]))
