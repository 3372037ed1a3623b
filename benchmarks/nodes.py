"""Node processes: started together, sent off together, listened to, killed, ended."""

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
from benchmarks.ground import ROOT, Ground
from harbor_refresh.local.process import kill_tree, tail

READY_SECONDS = 120
END_SECONDS = 5


@dataclass
class Node:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    at_work: bool = True
    alive: bool = True
    refreshed: int = 0
    answers: list[dict[str, int]] = field(default_factory=list)

    def say(self, word: str) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was made with one
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def total(self, what: str) -> int:
        """Of all cycles that were told."""
        return sum(answer.get(what, 0) for answer in self.answers)


class Nodes:
    """A context manager: entered when all of them are ready, left when none of them runs.

    `modes` are the arguments of each (`["cycle"]`, `["limit", "--first", "1", …]`), `environ` what all of
    them have over the ground's environment; node i of K gets CORE_INSTANCE_ID i and CORE_INSTANCE_TOTAL K.
    """

    def __init__(self, ground: Ground, modes: list[list[str]], **environ: str) -> None:
        self._ground = ground
        self._modes = modes
        self._environ = environ
        self._heard: queue.Queue[tuple[Node, dict[str, Any] | None]] = queue.Queue()
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
        """Refreshes of all nodes so far, a little behind while they work; exact after `stop`."""
        return sum(node.refreshed for node in self.all)

    def total(self, what: str) -> int:
        return sum(node.total(what) for node in self.all)

    def start(self, number: int) -> Node:
        """Start node `number`, counted from 0; `wait` for it to be ready."""
        name = f"node{len(self.all)}"
        log = self._ground.directory / f"{name}.log"
        environ = {
            **self._ground.environ,
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
        """Tell all that live, or these; then they are at work until they have answered."""
        chosen = self.alive if nodes is None else nodes
        for node in chosen:
            node.at_work = True
        for node in chosen:
            try:
                node.say(word)
            except BrokenPipeError:
                raise self._fallen(node) from None

    def wait(self, seconds: float) -> bool:
        """Listen until nobody is at work any more, or for so long; whether nobody is."""
        deadline = time.monotonic() + seconds
        while any(node.at_work for node in self.alive):
            try:
                node, message = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return False
            self._take(node, message)
        return True

    def kill(self, node: Node) -> None:
        """SIGKILL: it has no chance to tidy up."""
        node.alive = node.at_work = False
        kill_tree(node.process)

    def stop(self, seconds: float = 10) -> None:
        """End all, in the middle of a cycle if need be, and hear how far they have come."""
        ending = [node for node in self.alive if node.at_work]
        for node in ending:
            node.alive = False
            node.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while ending and time.monotonic() < deadline:
            try:
                node, message = self._heard.get(timeout=0.1)
            except queue.Empty:
                continue
            self._take(node, message)
            if message is None and node in ending:
                ending.remove(node)
                node.at_work = False
        for node in ending:
            self.kill(node)

    def _take(self, node: Node, message: dict[str, Any] | None) -> None:
        if message is None:
            if node.alive:
                raise self._fallen(node)
        elif "working" in message:
            node.refreshed = message["working"]
        else:
            node.at_work = False
            if "succeeded" in message:
                node.answers.append(message)

    def _listen(self, node: Node) -> None:
        assert node.process.stdout is not None  # noqa: S101 - it was made with one
        for line in node.process.stdout:
            with suppress(ValueError):  # the line in which it was ended
                self._heard.put((node, json.loads(line)))
        self._heard.put((node, None))

    def _fallen(self, node: Node) -> BenchError:
        node.alive = False
        code = node.process.wait()
        return BenchError(f"A node ended with {code}. Its last words:\n{tail(node.log)}")

    def _end(self) -> None:
        """At work or not, in time or not, in the end none of them runs."""
        for node in self.alive:
            if node.at_work:
                self.kill(node)
            else:
                node.alive = False
                try:
                    node.say("end")
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
