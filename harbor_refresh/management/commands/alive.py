"""`manage.py alive worker|beat`: whether a worker of this host answers, or beat still sends. For probes that
restart them.

The main loop of a worker may hang while its processes send heartbeats, so the worker is asked over the broker. If
Redis or PostgreSQL is away, a restart would not help, so the verdict is alive.
"""

import socket
from typing import Any, NamedTuple

from celery import current_app
from django.core.management.base import CommandParser
from redis.exceptions import RedisError

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.executions.management.command import AnswerCommand
from harbor_refresh.executions.management.output import Answer
from harbor_refresh.tasks.broker import channels
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import told
from harbor_refresh.tasks.checks.workers import beat_alive

#: How long a worker may take to answer; it answers between two messages.
ANSWER_SECONDS = 3.0


class Verdict(NamedTuple):
    """`why` is the reason, as text for people. The verdict is alive if nothing can be known."""

    is_alive: bool
    why: str


def judge_workers() -> Verdict:
    """Judge the workers of this host: one must answer. A worker of a pool without processes answers between two
    tasks only."""
    host = socket.gethostname()
    try:
        channels.messages(())  # raises if the broker is away, or is of a kind that passes no questions on
        names = _answering(host)
    except (QueueUnavailable, RedisError, *channels.AWAY) as exc:  # remote control raises those of the client
        return Verdict(True, f"the broker is away, so nothing is known of the workers: {exc}")
    if not names:
        return Verdict(False, f"no worker of {host} has answered within {ANSWER_SECONDS:g} s")
    return Verdict(True, f"{', '.join(names)} answers")


def _answering(host: str) -> list[str]:
    """Return the workers of this host that answer over the broker's channel for remote control. How many there are
    is not known, so this waits for its whole time."""
    hosts: Any = {"pattern": f"*@{host}", "matcher": "glob"}  # celery-types expects a function
    inspect = current_app.control.inspect(timeout=ANSWER_SECONDS, **hosts)
    return sorted(inspect.ping() or {})


def judge_beat() -> Verdict:
    """Judge beat as the doctor does, silenced or not, by when it last sent a task, and several beats together."""
    facts = Facts()
    if away := facts.state.absent.get("database"):
        return Verdict(True, f"the database is away, so nothing is known of beat: {away}")
    trouble = " ".join(told(one)["what"] for one in beat_alive(facts) if one.is_serious()).rstrip(".")
    return Verdict(not trouble, trouble or "beat sends what its schedule has")


class Command(AnswerCommand):
    help = "Exit with 1 if no worker of this host answers, or beat no longer sends. For liveness probes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("worker", "beat"), help="the workers of this host, or beat")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def answer(self, options: dict[str, Any]) -> Answer:
        is_alive, why = judge_beat() if options["what"] == "beat" else judge_workers()
        return Answer({"alive": is_alive, "why": why}, [f"{why}."] * is_alive, "" if is_alive else f"{why}.")
