"""`manage.py alive worker|beat`: whether the workers of this host, or beat, still do their work. For probes that
restart them.

The main loop of a worker may hang while its processes send heartbeats. So the worker is asked over the broker, and
must take a message within seconds if some wait and one of its processes is free. If Redis or PostgreSQL is down, a
restart would not help, so the verdict is alive.
"""

import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from celery import current_app
from django.core.management.base import CommandParser
from redis.exceptions import RedisError

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.broker.celery_queues import QUEUES
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import told
from harbor_refresh.tasks.checks.workers import beat_alive

#: How long a worker may take to answer; it answers between two messages.
ANSWER_SECONDS = 3.0
#: How long messages may wait for a worker that has a free process.
PROGRESS_SECONDS = 15.0
LOOK_SECONDS = 0.5


class Verdict(NamedTuple):
    """`why` is the reason, as text for people. The verdict is alive if nothing can be known."""

    is_alive: bool
    why: str


class Worker(NamedTuple):
    """What a worker says of itself: the tasks it has begun so far, its free processes, and its queues."""

    begun: int
    free: int
    queues: tuple[str, ...]


def judge_workers(*, seconds: float = PROGRESS_SECONDS) -> Verdict:
    """Judge the workers of this host: each that answers must take work if work waits for it, and one must answer.

    A worker of a pool without processes answers between two tasks only.
    """
    host = socket.gethostname()
    try:
        waiting = channels.messages(QUEUES)
        names = _answering(host)
        if not names:
            return Verdict(False, f"no worker of {host} has answered within {ANSWER_SECONDS:g} s")
        idle = _idle(names, seconds) if any(waiting.values()) else ""
    except (QueueUnavailable, RedisError, *channels.DOWN) as exc:  # remote control raises those of the client
        return Verdict(True, f"the broker is down, so nothing is known of the workers: {exc}")
    if idle:
        return Verdict(False, f"{idle} has a free process, and took none of the messages that wait for it")
    return Verdict(True, f"{', '.join(names)} answers and takes work")


def _answering(host: str) -> list[str]:
    """Return the workers of this host that answer over the broker's channel for remote control. How many there are
    is not known, so this waits for its whole time."""
    hosts: Any = {"pattern": f"*@{host}", "matcher": "glob"}  # celery-types expects a function
    inspect = current_app.control.inspect(timeout=ANSWER_SECONDS, **hosts)
    return sorted(inspect.ping() or {})


def _ask(names: Sequence[str]) -> dict[str, Worker]:
    """Ask these workers. One that does not answer in time is left out."""
    inspect = current_app.control.inspect(destination=list(names), timeout=ANSWER_SECONDS)
    stats, active, queues = inspect.stats() or {}, inspect.active() or {}, inspect.active_queues() or {}
    return {
        name: Worker(
            begun=sum((stats[name].get("total") or {}).values()),
            free=int(stats[name]["pool"].get("max-concurrency", 1)) - len(active[name]),
            queues=tuple(queue["name"] for queue in queues[name]),
        )
        for name in names
        if name in stats and name in active and name in queues
    }


def _idle(names: Sequence[str], seconds: float) -> str:
    """Return a worker that took no message for `seconds`, although some waited and it had a free process; else ''.

    A worker is sound as soon as it has begun a task, or has no free process, or nothing waits in its queues.
    """
    first = _ask(names)
    suspects, until = dict(first), time.monotonic() + seconds
    while suspects:
        waiting = channels.messages(QUEUES)
        now = _ask(list(suspects))
        suspects = {
            name: one
            for name, one in now.items()
            if one.free > 0 and one.begun == first[name].begun and any(waiting.get(queue) for queue in one.queues)
        }
        if time.monotonic() > until:
            break
        time.sleep(LOOK_SECONDS)
    return min(suspects, default="")


def judge_beat() -> Verdict:
    """Judge beat as the doctor does, silenced or not, by when it last sent a task, and several beats together."""
    facts = Facts()
    if down := facts.state.absent.get("database"):
        return Verdict(True, f"the database is down, so nothing is known of beat: {down}")
    trouble = " ".join(told(one)["what"] for one in beat_alive(facts) if one.is_serious()).rstrip(".")
    return Verdict(not trouble, trouble or "beat sends what its schedule has")


class Command(AnswerCommand):
    help = "Exit with 1 if the workers of this host, or beat, no longer work. For liveness probes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("worker", "beat"), help="the workers of this host, or beat")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        is_alive, why = judge_beat() if options["what"] == "beat" else judge_workers()
        return Answer({"alive": is_alive, "why": why}, [f"{why}."] * is_alive, "" if is_alive else f"{why}.")
