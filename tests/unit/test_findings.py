"""The checks of the dashboard: each fault is found by one, with what it means and the way out."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from harbor_refresh.admin.latest import findings
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.checks.registry import Shown, problems, told
from harbor_refresh.tasks.conf import DECLARED, Refresh
from harbor_refresh.tasks.news.state import Scheduled, SeenNode, ServiceState
from harbor_refresh.tasks.pipeline.schedule import ROWS

CONF = Refresh(redis_url="redis://localhost", **{field: one.default for field, one in DECLARED.items()})
SCHEDULE = tuple(Scheduled(row.name, row.task, True, row.seconds, 1.0) for row in ROWS)
SOUND = ServiceState(
    backlog=3,
    in_flight=2,
    failed_before=0,
    oldest_waiting=0.4,
    pause=0.0,
    nodes=(SeenNode("host-1-a", 0.5), SeenNode("host-2-b", 1.5)),
    dead=(),
    last_heartbeat=0.5,
    last_tick=2.0,
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
#: A project without rows of beat.
OWN_BEAT = replace(SOUND, schedule=None, first_heartbeat=9_999.0, last_sample=91.0, last_reconcile=91.0)
SILENT_BEAT = tuple(replace(row, sent=None if row.sent is None else 95.0) for row in SCHEDULE)

FAULTS: dict[str, tuple[ServiceState, list[str]]] = {
    "database_down": (ServiceState(absent={"database": "PostgreSQL: refused"}), ["database.reachable"]),
    "not_migrated": (
        ServiceState(
            absent={"database": 'PostgreSQL: relation "execution" does not exist'},
            is_migrated=False,
            first_heartbeat=99.0,
        ),
        ["tables.migrations"],
    ),
    "redis_down": (
        replace(SOUND, absent={"redis": "Redis: refused", "broker": "Redis: refused"}, nodes=None, backlog=None),
        ["redis.reachable"],
    ),
    "broker_down": (replace(SOUND, absent={"broker": "Redis: refused"}, messages=None), ["broker.reachable"]),
    "no worker": (replace(SOUND, nodes=(), last_heartbeat=90.0, last_tick=90.0), ["workers.alive"]),
    "no worker ever": (replace(SOUND, nodes=(), last_heartbeat=None, last_tick=None), ["workers.alive"]),
    "ticks stopped": (replace(SOUND, last_tick=95.0), ["workers.ticks"]),
    "no tick since Redis was emptied": (replace(SOUND, last_tick=None, first_heartbeat=95.0), ["workers.ticks"]),
    "beat is silent": (replace(SOUND, schedule=SILENT_BEAT), ["beat.alive"]),
    "beat never ran": (
        replace(SOUND, schedule=tuple(replace(row, sent=None) for row in SCHEDULE)),
        ["beat.alive"],
    ),
    "Celery's own beat never ran": (
        replace(OWN_BEAT, first_heartbeat=21.0, last_sample=None, last_reconcile=None),
        ["beat.alive"],
    ),
    "Celery's own beat has died, and starts make ticks": (OWN_BEAT, ["beat.alive"]),
    "a row is gone": (replace(SOUND, schedule=SCHEDULE[1:]), ["beat.rows"]),
    "a row is disabled": (
        replace(SOUND, schedule=(replace(SCHEDULE[0], is_enabled=False), *SCHEDULE[1:])),
        ["beat.rows"],
    ),
    "the database was down": (replace(SOUND, pause=1.5), ["status.paused"]),
    "an execution waits": (replace(SOUND, oldest_waiting=61.0), ["status.waiting"]),
    "quarantine": (replace(SOUND, quarantined=1), ["status.quarantine"]),
    "a webhook waits": (replace(SOUND, waiting_webhooks=("pager",)), ["status.webhooks"]),
    "dead letters": (replace(SOUND, dead_letters=2), ["status.deliveries"]),
    "reconcile is late": (replace(SOUND, last_reconcile=300.0), ["status.reconcile"]),
    "paused": (
        replace(SOUND, paused=("refreshing", "the queue harbor_refresh.jobs")),
        ["status.paused", "status.paused"],
    ),
    "a worker died": (replace(SOUND, dead=(SeenNode("host-3-c", 34.0),)), ["workers.died"]),
}


def found(state: ServiceState, conf: Refresh = CONF) -> list[dict[str, str]]:
    """What the dashboard shows; no server is asked."""
    facts = Facts(glance=state)
    facts.conf = conf
    return [told(one) for one in problems(Shown.DASHBOARD, facts)]


def test_nothing_is_found_on_a_sound_service() -> None:
    assert found(SOUND) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_nothing_else(fault: str) -> None:
    state, codes = FAULTS[fault]
    shown = found(state)
    assert [one["id"] for one in shown] == codes
    for one in shown:
        assert one["todo"]
        for sentence in (one["what"], one["meaning"]):
            assert sentence[0].isupper() or sentence[0].isdigit() or sentence[0] == "“"
        assert one["what"].endswith(".")


#: At each border, what is still right.
BORDERS = {
    "a tick is due after the interval, and may wait for a busy worker": replace(SOUND, last_tick=90.0),
    "workers that have just started wait for the first tick": replace(SOUND, last_tick=None, first_heartbeat=90.0),
    "beat sends every five seconds, and may be late": replace(
        SOUND, schedule=tuple(replace(row, sent=45.0) for row in SCHEDULE)
    ),
    "Celery's own beat has just started": replace(
        OWN_BEAT, first_heartbeat=20.0, last_sample=None, last_reconcile=None
    ),
    "what Celery's own beat sends is done": replace(OWN_BEAT, last_sample=90.0),
    "a reconcile is done while samples are left out": replace(OWN_BEAT, last_reconcile=90.0),
    "workers have just started again": replace(OWN_BEAT, first_heartbeat=90.0),
    "an execution waits for the interval": replace(SOUND, oldest_waiting=60.0),
    "a backlog": replace(SOUND, backlog=1_000_000),
    "reconcile runs each minute": replace(SOUND, last_reconcile=210.0),
    "a worker died long ago": replace(SOUND, dead=(SeenNode("host-3-c", 601.0),)),
    "reconcile has not run yet": replace(SOUND, last_reconcile=None),
}


@pytest.mark.parametrize("border", BORDERS)
def test_what_is_within_its_limit_is_no_finding(border: str) -> None:
    assert found(BORDERS[border]) == []


def test_reconcile_is_not_late_while_a_long_queue_postpones_it() -> None:
    state = replace(SOUND, last_reconcile=900.0, backlog=50_001)
    assert found(state) == []


def test_what_a_person_must_do_comes_before_what_is_worth_knowing() -> None:
    state = replace(SOUND, dead=(SeenNode("host-3-c", 34.0),), quarantined=7)
    assert [(one.id, one.is_serious()) for one in findings(state)] == [
        ("status.quarantine", True),
        ("workers.died", False),
    ]


def test_the_sentences_name_numbers_and_the_command(settings: Settings) -> None:
    (one,) = found(replace(SOUND, nodes=(), last_heartbeat=90.0))
    assert one["what"] == "No worker is alive; the last heartbeat came 1 min 30 s ago."
    assert one["todo"] == "Start one with: celery -A harbor_refresh worker --concurrency 2"
    (one,) = found(replace(SOUND, dead=(SeenNode("host-3-c", 34.0),)))
    assert one["meaning"] == "Its claims and jobs go back on their queues, for workers that take these queues."
    assert one["todo"].startswith("If a worker has ended, start it again.")
    assert "and Redis was not down" in one["todo"]
    (one,) = found(OWN_BEAT)
    assert (one["level"], one["what"]) == (
        "error",
        "No worker has run anything that a beat sends for 1 min 31 s.",
    )
    (one,) = found(replace(OWN_BEAT, last_sample=None, last_reconcile=None))
    assert (one["level"], one["what"]) == ("warning", "No worker has run anything that a beat sends.")
    assert one["todo"] == (
        "If a beat runs, start a worker that takes the queue harbor_refresh.ticks. "
        "If none runs, start one with: celery -A harbor_refresh beat --pidfile="
    )
    command = "celery -A YOUR_PROJECT worker -n refresh@%h -Q harbor_refresh,harbor_refresh.ticks,"
    settings.HARBOR_REFRESH_SERVICE = False
    (one,) = found(replace(SOUND, last_tick=95.0))
    assert f"a worker takes that queue: {command}" in one["todo"]
    (one,) = found(replace(SOUND, quarantined=1))
    assert one["what"] == "1 execution could not be refreshed and is in quarantine."
