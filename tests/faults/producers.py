"""Producers that add jobs to an open execution, each a process of its own, and each is killed.

`python -m tests.faults.producers`, with PRODUCERS in the environment, a JSON object:

    execution  the id of the open execution
    deaths     how many producers live and die
    at_once    how many of them live at a time
    pages      how many additions a producer makes, each with a key of its own; then it waits for its death
    jobs       how many jobs an addition has
    seed       decides who repeats whom, and when each dies
    notes      a file: each addition that returned is a line `PRODUCER.PAGE JOBS`, or `PRODUCER.PAGE closed`

A producer is a fork of this process, which has no connections, so a death costs milliseconds. Some begin again
what an earlier one did not live to finish, with the same keys. A third die at the point `added`: their jobs are
committed and not sent. The other ones die at a random moment, by a signal from outside."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import django

django.setup()

from harbor_refresh.executions import crash_points  # noqa: E402
from harbor_refresh.executions.errors import ExecutionClosed  # noqa: E402
from harbor_refresh.tasks.jobs import TrackedExecution  # noqa: E402
from tests.faults import jobs as team  # noqa: E402

#: A producer that has done all its work is dead after that time, too; or after so many times what one takes alone.
LONGEST_SECONDS, LONGEST_TIMES = 1.5, 12


def produce(plan: dict[str, int], number: int, dies_at_addition: int | None) -> None:
    """Add all pages of this producer, then wait for death."""
    passed = 0

    def reach(point: str, _: Sequence[int]) -> None:
        nonlocal passed
        if point == "added":
            passed += 1
            if passed == dies_at_addition:
                os.kill(os.getpid(), signal.SIGKILL)

    crash_points.handlers.append(reach)
    execution = TrackedExecution.objects.get(pk=plan["execution"])
    for page in range(plan["pages"]):
        key = f"{number}.{page}"
        jobs = [team.copy.s(f"{key}.{one}") for one in range(plan["jobs"])]
        try:
            note(plan, f"{key} {execution.add(jobs, once=key)}")
        except ExecutionClosed:
            note(plan, f"{key} closed")
    time.sleep(3600)


def note(plan: dict[str, int], line: str) -> None:
    with Path(str(plan["notes"])).open("a") as notes:
        notes.write(f"{line}\n")


def main() -> None:
    plan = json.loads(os.environ["PRODUCERS"])
    chance = random.Random(plan["seed"])
    alive: dict[int, float] = {}
    longest = max(LONGEST_SECONDS, LONGEST_TIMES * seconds_of_one(plan))
    for number in range(1, plan["deaths"]):
        while len(alive) >= plan["at_once"]:
            bury(alive)
        who = number if number < 10 or chance.random() < 0.7 else chance.randrange(number)
        dies_at_addition = chance.randint(1, plan["pages"]) if chance.random() < 1 / 3 else None
        lives = chance.random() ** 2 * longest
        if pid := os.fork():
            alive[pid] = time.monotonic() + lives
            continue
        try:
            produce(plan, who, dies_at_addition)
        except BaseException as exc:
            note(plan, f"{who} failed: {type(exc).__name__}: {exc}".replace("\n", " "))
        os._exit(1)
    while alive:
        bury(alive)


def seconds_of_one(plan: dict[str, int]) -> float:
    """Let the first producer do all its work before it dies, and return how long that takes on this machine."""
    began, notes = time.monotonic(), Path(str(plan["notes"]))
    if not (pid := os.fork()):
        produce(plan, 0, None)
    while len(notes.read_text().splitlines()) < plan["pages"]:
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return time.monotonic() - began


def bury(alive: dict[int, float]) -> None:
    """Kill the producers whose time has come, and forget those that are dead. Each has died by SIGKILL."""
    now = time.monotonic()
    for pid, until in list(alive.items()):
        if now > until:
            os.kill(pid, signal.SIGKILL)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del alive[pid]
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                sys.exit(f"producer {pid} ended by itself: {status}")
    time.sleep(0.005)


if __name__ == "__main__":
    main()
