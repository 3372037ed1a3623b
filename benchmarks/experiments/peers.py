"""A parent of many jobs from start to its end, ours and others (`benchmarks.peers`).

Each job sets one bit in Redis, so the run knows how many have truly run. Each parent is asked every second how far
it is. Two passes for each: an undisturbed one, and one in which the job in the middle kills its worker
(SIGKILL to the process and its pool) when it runs for the first time.

The true end is the moment at which all jobs are seen to have run. That is looked at between two questions, so
it is late by one question where those take long. Then the parent is asked without a pause until it says that it
has ended. A pass is cut after `--budget` seconds, and `--patience` seconds after the kill; what the parent says
then stands in the table.
"""

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from benchmarks.options import seconds, with_defaults
from benchmarks.peers import PEERS, Parent, Peer, effects, peer
from benchmarks.peers.said import Said
from benchmarks.percentiles import percentile
from benchmarks.rows import Row
from benchmarks.screen import Column, Screen, Show
from benchmarks.servers import Servers

COLUMNS: Sequence[Column] = (
    ("way", "way"),
    ("jobs", "jobs"),
    ("killed", "worker killed"),
    ("start_seconds", "start s"),
    ("seconds", "true end s"),
    ("jobs_per_second", "jobs/s"),
    ("told_seconds", "told after s"),
    ("ask_ms", "to ask, ms"),
    ("lost", "not run"),
    ("said_done", "says done"),
    ("said", "says"),
)
WARM_UP = 200
POLL_SECONDS = 0.02
ASK_SECONDS = 1.0


def arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("options of peers").add_argument
    text = f"peers: which, in this order; default: {','.join(PEERS)}"
    add("--peers", type=_names, default=list(PEERS), metavar="A,B,…", help=text)
    text = "peers: how long to wait for the end after the kill; default: 90"
    add("--patience", type=seconds, default=90.0, metavar="S", help=text)


def run(servers: Servers, options: Namespace, screen: Screen) -> list[Row]:
    options = with_defaults("peers", options)
    rows = []
    for name in options.peers:
        one = peer(name)
        for killed in (False, True):
            servers.empty_redis()
            with one.workers(servers, options.workers, options.concurrency):
                _Pass(one, WARM_UP, options).run()
                title = f"{one.NAME}, a worker is killed" if killed else one.NAME
                with screen.stage(title, options.tasks) as show:
                    measured = _Pass(one, options.tasks, options, killed, show)
                    measured.run()
                rows.append(measured.row())
                screen.keep(rows[-1])
    return rows


NOTHING = Said(None, False, "")


@dataclass
class _Pass:
    """One parent, from its start until it says that it has ended, or the budget is used up."""

    peer: Peer
    jobs: int
    options: Namespace
    killed: bool = False
    show: Show = lambda done: None
    start_seconds: float = 0.0
    end: float | None = None
    told: float | None = None
    said: Said = NOTHING
    asked: list[float] = field(default_factory=list)

    def run(self) -> None:
        effects.forget()
        numbers = [*range(self.jobs)]
        if self.killed:
            numbers[self.jobs // 2] *= -1
        began = time.perf_counter()
        parent = self.peer.start(numbers)
        self.start_seconds = time.perf_counter() - began
        next_ask, is_alive, cut = began + ASK_SECONDS, True, self.options.budget
        while (now := time.perf_counter() - began) < cut:
            ran = effects.ran()
            self.show(ran)
            if ran == self.jobs and self.end is None:
                self.end = now
            if self.killed and is_alive and effects.has_killed():
                is_alive, cut = False, now + self.options.patience
            if self.end is not None or time.perf_counter() >= next_ask:
                next_ask = time.perf_counter() + ASK_SECONDS
                if self._ask(parent).has_ended:
                    self.told = time.perf_counter() - began
                    break
            time.sleep(POLL_SECONDS)
        if self.end is None and effects.ran() == self.jobs:  # they ended while it was asked
            self.end = self.told
        self._ask(parent)

    def _ask(self, parent: Parent) -> Said:
        began = time.perf_counter()
        self.said = parent.says()
        self.asked.append(time.perf_counter() - began)
        return self.said

    def row(self) -> Row:
        extra = {
            "way": self.peer.NAME,
            "jobs": self.jobs,
            "killed": self.killed,
            "start_seconds": round(self.start_seconds, 3),
            "jobs_per_second": round(self.jobs / self.end, 1) if self.end else None,
            "told_seconds": round(self.told, 3) if self.told else None,
            "ask_ms": round(1000 * (percentile(self.asked, 0.5) or 0.0), 2),
            "said_done": self.said.done,
            "said": self.said.words,
        }
        lost = self.jobs - effects.ran()
        end = round(self.end, 3) if self.end else None
        return Row(self.peer.NAME, 1, 1, seconds=end, lost=lost, cut=self.told is None, extra=extra)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    with suppress(KeyError):
        return [PEERS[name] and name for name in names] or list(PEERS)
    raise ArgumentTypeError(f"got {text!r}, takes {', '.join(PEERS)}, with commas between them")
