"""`harbor status --watch`: a screen that lives, and a line of JSON for each look."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from rich.console import Console

from harbor_refresh.local.ports import choose_port
from harbor_refresh.tasks.management.verbs.queue_watch import BARS, Past, line, screen
from harbor_refresh.tasks.overview.state import Node, State
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests import servers
from tests.integration.command_output import ROOT, manage, said
from tests.waiting import wait_for

STATS = ("harbor", "status", "--watch")


def shown(state: State, past: Past | None = None) -> str:
    if past is None:
        past = Past()
        past.note(state)
    console = Console(width=120, force_terminal=False, record=True, file=StringIO())
    console.print(screen(state, past))
    return console.export_text()


@pytest.fixture
def terminal(database: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command on a terminal of its own, and the end from which its screen can be read."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "manage.py", *STATS, "--interval", "0.2"],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "settings.test",
            "DATABASE_URL": servers.postgres.url_for(connection.settings_dict["NAME"]),
            "TERM": "xterm",
            "COLUMNS": "120",
            "LINES": "40",
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    yield process, ours
    process.kill()
    process.wait(120)
    os.close(ours)


def test_the_screen_follows_the_queue_until_ctrl_c(
    terminal: tuple[subprocess.Popen[bytes], int], queue: ExecutionQueue
) -> None:
    process, screen_of = terminal
    seen = bytearray()

    def read() -> None:
        """A terminal that nobody reads is soon full, and holds up the program that writes to it."""
        ready, _, _ = select.select([screen_of], [], [], 0.05)
        with suppress(OSError):  # the program has ended, and closed its terminal
            seen.extend(os.read(screen_of, 65536) if ready else b"")

    def shows(pattern: bytes) -> bool:
        read()
        return bool(re.search(pattern, seen))

    def has_ended() -> bool:
        read()
        return process.poll() is not None

    wait_for(lambda: shows(rb"backlog\s+0"), "an empty queue")
    queue.mark([f"{one}:A" for one in range(1234)])
    wait_for(lambda: shows(rb"backlog\s+1,234"), "what was marked")
    wait_for(lambda: shows(rb"No worker is alive"), "what is wrong")
    process.send_signal(signal.SIGINT)
    wait_for(has_ended, "the program to end")
    assert (process.returncode, b"Traceback" in seen) == (0, False)


def test_json_is_a_line_for_each_look(queue: ExecutionQueue, database: str) -> None:
    queue.mark(["1:A", "2:A"])
    looks = [json.loads(one) for one in said(*STATS, "--json", "--times", 2, "--interval", 0.1).splitlines()]
    assert [one["backlog"] for one in looks] == [2, 2]
    assert looks[0]["at"] < looks[1]["at"]
    assert "workers.alive" in [one["id"] for one in looks[0]["findings"]]


def test_it_goes_on_while_redis_is_away(database: str) -> None:
    ran = manage(
        *STATS, "--json", "--times", "2", "--interval", "0.1", REDIS_URL=f"redis://127.0.0.1:{choose_port()}"
    )
    assert ran.returncode == 0
    looks = [json.loads(one) for one in ran.stdout.splitlines()]
    assert [(one["backlog"], sorted(one["absent"])) for one in looks] == [(None, ["broker", "redis"])] * 2


def test_without_a_terminal_there_is_no_screen(database: str, redis: object) -> None:
    with pytest.raises(CommandError, match="--watch needs a terminal"):
        call_command(*STATS)


@pytest.mark.parametrize("interval", ["0", "soon", "-1", "nan", "4000"])
def test_a_pace_that_makes_no_sense_is_misuse(interval: str) -> None:
    with pytest.raises(CommandError, match="is not a number of seconds from"):
        call_command(*STATS, "--interval", interval)


def test_a_state_of_which_nothing_is_known_is_shown_as_such() -> None:
    text = shown(State(absent={"redis": "gone", "broker": "gone", "database": "gone"}))
    assert len(re.findall(r"(backlog|in flight|quarantined)\s+unknown", text)) == 3
    assert "nodes unknown" in text
    assert "Redis is away, or does not answer in time. gone" in text


def test_names_of_nodes_cannot_move_the_cursor() -> None:
    text = shown(State(nodes=(Node("n\x1b[2J1", 0.2),), backlog=0, in_flight=0))
    assert "n\\x1b[2J1" in text


def test_the_trend_is_told_in_executions_a_second() -> None:
    past = Past()
    for second, backlog in enumerate([1000, 900, 800]):
        past.note(State(backlog=backlog), now=second)
    assert (past.pace(), past.trend()) == (-100, "shrinks by 100 a second, empty in 8 s")
    past.note(State(backlog=None), now=3)
    assert past.trend() == ""
    past.note(State(backlog=2000), now=4)
    assert past.trend() == "grows by 250 a second"


def test_a_line_has_a_bar_for_each_look_and_a_gap_where_nothing_is_known() -> None:
    assert line([0, None, 7, 70]) == f"{BARS[0]} {BARS[0]}{BARS[7]}"
    assert line([]) == ""
    assert line([0, 0]) == BARS[0] * 2
