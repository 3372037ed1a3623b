"""Node processes: start them together, send them words, read their answers, kill and stop them."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.errors import BenchError
from benchmarks.servers import ROOT, Servers
from harbor_refresh.local.process import kill_tree, tail

READY_SECONDS = 120
END_SECONDS = 5


@dataclass
class Node:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    working: bool = True
    alive: bool = True
    refreshed: int = 0
    answers: list[dict[str, int]] = field(default_factory=list)

    def send(self, word: str) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was made with one
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def total(self, what: str) -> int:
        """The sum over all cycles that were answered."""
        return sum(answer.get(what, 0) for answer in self.answers)


class Nodes:
    """A context manager. On entry all nodes are ready; after the exit none runs.

    `modes` are the arguments of each node (`["cycle"]`, `["limit", "--first", "1", …]`). `environ` is added to the
    servers' environment of all nodes. Node i of K gets CORE_INSTANCE_ID i and CORE_INSTANCE_TOTAL K.
    """

    def __init__(self, servers: Servers, modes: list[list[str]], **environ: str) -> None:
        self._servers = servers
        self._modes = modes
        self._environ = environ
        self._messages: queue.Queue[tuple[Node, dict[str, Any] | None]] = queue.Queue()
        self.all: list[Node] = []

    def __enter__(self) -> Self:
        try:
            for number in range(len(self._modes)):
                self.start(number)
            if not self.wait(READY_SECONDS):
                raise BenchError(f"The nodes were not ready after {READY_SECONDS} s.")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.all if node.alive]

    @property
    def refreshed(self) -> int:
        """The refreshes of all nodes so far: up to 0.1 s old while they work, exact after `stop`."""
        return sum(node.refreshed for node in self.all)

    def total(self, what: str) -> int:
        return sum(node.total(what) for node in self.all)

    def start(self, number: int) -> Node:
        """Start node `number`, counted from 0, without waiting until it is ready: `wait` does."""
        name = f"node{len(self.all)}"
        log = self._servers.directory / f"{name}.log"
        environ = {
            **self._servers.environ,
            "CORE_INSTANCE_ID": str(number),
            "CORE_INSTANCE_TOTAL": str(len(self._modes)),
            **self._environ,
        }
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.node", *self._modes[number]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env=environ,
                start_new_session=True,
            )
        node = Node(name, process, log)
        self.all.append(node)
        threading.Thread(target=self._listen, args=[node], daemon=True).start()
        return node

    def send(self, word: str = "go", nodes: list[Node] | None = None) -> None:
        """Send the word to these nodes, or to all that are alive. A node is working until it has answered."""
        chosen = self.alive if nodes is None else nodes
        for node in chosen:
            node.working = True
        for node in chosen:
            try:
                node.send(word)
            except BrokenPipeError:
                raise self._failure(node) from None

    def wait(self, seconds: float) -> bool:
        """Read answers until no node is working, at most for `seconds`; return whether no node is working."""
        deadline = time.monotonic() + seconds
        while any(node.working for node in self.alive):
            try:
                node, message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return False
            self._receive(node, message)
        return True

    def kill(self, node: Node) -> None:
        """Send SIGKILL, so that the node cannot clean up."""
        node.alive = node.working = False
        kill_tree(node.process)

    def stop(self, seconds: float = 10) -> None:
        """Stop all nodes, if necessary in the middle of a cycle, and read how many refreshes they have done."""
        ending = [node for node in self.alive if node.working]
        for node in ending:
            node.alive = False
            node.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while ending and time.monotonic() < deadline:
            try:
                node, message = self._messages.get(timeout=0.1)
            except queue.Empty:
                continue
            self._receive(node, message)
            if message is None and node in ending:
                ending.remove(node)
                node.working = False
        for node in ending:
            self.kill(node)

    def _receive(self, node: Node, message: dict[str, Any] | None) -> None:
        if message is None:
            if node.alive:
                raise self._failure(node)
        elif "working" in message:
            node.refreshed = message["working"]
        else:
            node.working = False
            if "succeeded" in message:
                node.answers.append(message)

    def _listen(self, node: Node) -> None:
        assert node.process.stdout is not None  # noqa: S101 - it was made with one
        for line in node.process.stdout:
            with suppress(ValueError):  # a node that is killed may write half a line
                self._messages.put((node, json.loads(line)))
        self._messages.put((node, None))

    def _failure(self, node: Node) -> BenchError:
        node.alive = False
        code = node.process.wait()
        return BenchError(f"A node ended with {code}. The end of its log:\n{tail(node.log)}")

    def _end(self) -> None:
        """End all nodes. Those that are working, and those that do not end in time, are killed."""
        for node in self.alive:
            if node.working:
                self.kill(node)
            else:
                node.alive = False
                try:
                    node.send("end")
                except BrokenPipeError:
                    continue
        deadline = time.monotonic() + END_SECONDS
        for node in self.all:
            try:
                node.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                kill_tree(node.process)
            for pipe in (node.process.stdin, node.process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue
