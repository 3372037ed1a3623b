"""Findings: each fault has one, with what it means and the way out; a sound service has none."""

from dataclasses import replace

import pytest

from harbor_refresh.tasks.conf import DECLARED, Refresh
from harbor_refresh.tasks.overview.findings import Finding, Level, findings
from harbor_refresh.tasks.overview.state import Node, Scheduled, State
from harbor_refresh.tasks.schedule import ROWS

CONF = Refresh(redis_url="redis://localhost", **{field: one.default for field, one in DECLARED.items()})
SCHEDULE = tuple(Scheduled(row.name, row.task, True, row.seconds, 1.0) for row in ROWS)
SOUND = State(
    backlog=3,
    in_flight=2,
    failed_before=0,
    oldest_waiting=0.4,
    pause=0.0,
    nodes=(Node("host-1-a", 0.5), Node("host-2-b", 1.5)),
    dead=(),
    last_heartbeat=0.5,
    last_tick=2.0,
    last_claim=2.0,
    jobs_in_progress=0,
    messages={"harbor_refresh": 0},
    quarantined=0,
    dead_letters=0,
    open_actions=0,
    last_reconcile=30.0,
    drifted=0,
    schedule=SCHEDULE,
    paused=(),
)
SILENT_BEAT = tuple(replace(row, sent=None if row.sent is None else 95.0) for row in SCHEDULE)

FAULTS: dict[str, tuple[State, list[str]]] = {
    "database_away": (State(absent={"database": "PostgreSQL: refused"}), ["database_away"]),
    "not_migrated": (
        State(absent={"database": 'PostgreSQL: relation "execution" does not exist'}, is_migrated=False),
        ["not_migrated"],
    ),
    "redis_away": (
        replace(SOUND, absent={"redis": "Redis: refused", "broker": "Redis: refused"}, nodes=None, backlog=None),
        ["redis_away"],
    ),
    "broker_away": (replace(SOUND, absent={"broker": "Redis: refused"}, messages=None), ["broker_away"]),
    "no worker": (replace(SOUND, nodes=(), last_heartbeat=90.0, last_tick=90.0), ["no_worker"]),
    "no worker ever": (replace(SOUND, nodes=(), last_heartbeat=None, last_tick=None), ["no_worker"]),
    "ticks stopped": (replace(SOUND, last_tick=95.0), ["ticks_stopped"]),
    "no tick since Redis was emptied": (replace(SOUND, last_tick=None), ["ticks_stopped"]),
    "beat is silent": (replace(SOUND, schedule=SILENT_BEAT), ["beat_silent"]),
    "beat never ran": (
        replace(SOUND, schedule=tuple(replace(row, sent=None) for row in SCHEDULE)),
        ["beat_silent"],
    ),
    "a row is gone": (replace(SOUND, schedule=SCHEDULE[1:]), ["schedule_row_missing"]),
    "a row is disabled": (
        replace(SOUND, schedule=(replace(SCHEDULE[0], is_enabled=False), *SCHEDULE[1:])),
        ["schedule_row_disabled"],
    ),
    "the database was away": (replace(SOUND, pause=1.5), ["database_was_away"]),
    "an execution waits": (replace(SOUND, oldest_waiting=61.0), ["oldest_waits"]),
    "a long backlog": (replace(SOUND, backlog=10_001), ["long_backlog"]),
    "quarantine": (replace(SOUND, quarantined=1), ["quarantined"]),
    "dead letters": (replace(SOUND, dead_letters=2), ["dead_letters"]),
    "reconcile is late": (replace(SOUND, last_reconcile=300.0), ["reconcile_late"]),
    "drift": (replace(SOUND, drifted=4), ["drift"]),
    "paused": (replace(SOUND, paused=("refreshing", "the queue harbor_refresh.jobs")), ["paused", "paused"]),
    "a worker died": (replace(SOUND, dead=(Node("host-3-c", 34.0),)), ["worker_died"]),
}


def told(state: State) -> list[Finding]:
    return findings(state, CONF)


def test_nothing_is_found_on_a_sound_service() -> None:
    assert told(SOUND) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_nothing_else(fault: str) -> None:
    state, codes = FAULTS[fault]
    found = told(state)
    assert [one.code for one in found] == codes
    for one in found:
        for sentence in (one.what, one.meaning, one.todo):
            assert sentence[0].isupper() or sentence[0].isdigit() or sentence[0] == "“"
        assert one.what.endswith(".")


#: At each border, what is still right.
BORDERS = {
    "a tick is due after the interval, and may wait for a busy worker": replace(SOUND, last_tick=90.0),
    "beat sends every five seconds, and may be late": replace(
        SOUND, schedule=tuple(replace(row, sent=45.0) for row in SCHEDULE)
    ),
    "an execution waits for the interval": replace(SOUND, oldest_waiting=60.0),
    "a backlog": replace(SOUND, backlog=10_000),
    "reconcile runs each minute": replace(SOUND, last_reconcile=210.0),
    "a worker died long ago": replace(SOUND, dead=(Node("host-3-c", 601.0),)),
    "reconcile has not run yet": replace(SOUND, last_reconcile=None, drifted=None),
}


@pytest.mark.parametrize("border", BORDERS)
def test_what_is_within_its_limit_is_no_finding(border: str) -> None:
    assert told(BORDERS[border]) == []


def test_reconcile_is_not_late_while_a_long_queue_postpones_it() -> None:
    state = replace(SOUND, last_reconcile=900.0, backlog=50_001)
    assert [one.code for one in told(state)] == ["long_backlog"]


def test_without_a_queue_no_tick_is_missed() -> None:
    conf = replace(CONF, interval=0.0)
    assert findings(replace(SOUND, last_tick=None, oldest_waiting=0.0), conf) == []


def test_what_a_person_must_do_comes_before_what_is_worth_knowing() -> None:
    state = replace(SOUND, dead=(Node("host-3-c", 34.0),), backlog=20_000, quarantined=7)
    assert [(one.code, one.level) for one in told(state)] == [
        ("quarantined", Level.WRONG),
        ("long_backlog", Level.NOTICE),
        ("worker_died", Level.NOTICE),
    ]


def test_the_sentences_name_numbers_and_the_command() -> None:
    (found,) = told(replace(SOUND, nodes=(), last_heartbeat=90.0))
    assert found.what == "No worker is alive; the last heartbeat came 1 min 30 s ago."
    assert found.todo == "Start one with: celery -A harbor_refresh worker --concurrency 2"
    (found,) = told(replace(SOUND, quarantined=1))
    assert found.what == "1 execution could not be refreshed and is in quarantine."
