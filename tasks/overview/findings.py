"""Findings: what is wrong at this moment, each in a sentence, with what it means and what to do.

A finding follows from the state alone, so the dashboard, the doctor and the tests agree. The sentences are written
for an operator who sees this program for the first time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from harbor_refresh.executions.declarations import is_service
from harbor_refresh.executions.durations import age, ago
from harbor_refresh.executions.text import plural
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.celery_queues import WORK
from harbor_refresh.tasks.conf import Refresh, refresh_settings
from harbor_refresh.tasks.overview.state import State
from harbor_refresh.tasks.schedule import ROWS

#: A node that died within this time is shown.
LATELY_SECONDS = 600
#: Slack for a message that waits for a busy worker, and for clocks that differ.
SLACK_SECONDS = 30
#: A longer backlog is a finding.
LONG_BACKLOG = 10_000
#: Reconcile is postponed beyond this (tasks/pipeline/reconciliation.py).
POSTPONING_BACKLOG = 50_000

WORKER = "celery -A harbor_refresh worker --concurrency 2"
BEAT = "celery -A harbor_refresh beat --pidfile="
#: Of a project, whose app is not ours.
ITS_WORKER = "celery -A YOUR_PROJECT worker -n refresh@%h -Q harbor_refresh,harbor_refresh.ticks"
ITS_BEAT = "celery -A YOUR_PROJECT beat"
OF_A_PROJECT = {
    "DATABASE_URL": "DATABASES in the settings",
    "REDIS_URL": "REDIS_URL in HARBOR_REFRESH (without it, at the broker of the Celery app)",
    "CELERY_BROKER_URL": "the broker of the Celery app",
}


class Level(StrEnum):
    """`wrong`: a person should act. `notice`: worth knowing; it heals by itself, or an operator wanted it."""

    WRONG = "wrong"
    NOTICE = "notice"


@dataclass(frozen=True)
class Finding:
    """`code` names the kind of finding: it stays the same while the words change."""

    code: str
    what: str
    meaning: str
    todo: str
    level: Level = Level.WRONG


def findings(state: State, conf: Refresh | None = None) -> list[Finding]:
    """Return what is wrong in this state, the most urgent first."""
    conf = conf or refresh_settings()
    found = [finding for rule in RULES for finding in rule(state, conf)]
    return sorted(found, key=lambda finding: finding.level == Level.NOTICE)


def _servers(state: State, conf: Refresh) -> Iterator[Finding]:
    reason = state.absent.get("database")
    if reason and not state.is_migrated:
        yield Finding(
            "not_migrated",
            f"The tables of this release are not in the database: {reason}.",
            "No execution can be started, no report stored and no status refreshed.",
            "Type: python manage.py migrate",
        )
    elif reason:
        yield Finding(
            "database_away",
            f"PostgreSQL does not answer: {reason}.",
            "No report can be stored and no status refreshed. What was committed is safe.",
            f"Look at the database server, and at {_setting('DATABASE_URL')}. Workers go on by themselves when it "
            "is back.",
        )
    if reason := state.absent.get("redis"):
        yield Finding(
            "redis_away",
            f"Redis does not answer: {reason}.",
            "Reports are stored, and no status is refreshed until it is back. Nothing is lost: reconcile finds in "
            "the database what Redis forgot.",
            f"Look at the Redis server, and at {_setting('REDIS_URL')}. Workers reconnect by themselves.",
        )
    if (reason := state.absent.get("broker")) and "redis" not in state.absent:
        yield Finding(
            "broker_away",
            f"The broker does not answer: {reason}.",
            "Workers get no messages, so nothing is refreshed and no job runs.",
            f"Look at the broker, and at {_setting('CELERY_BROKER_URL')}.",
        )


def _setting(variable: str) -> str:
    """Name the place where a project says what this variable of the service says."""
    return variable if is_service() else OF_A_PROJECT[variable]


def _paused(state: State, conf: Refresh) -> Iterator[Finding]:
    for name in state.paused or ():
        yield Finding(
            "paused",
            f"An operator has paused {'refreshing' if name == WORK else f'the queue {name}'}.",
            "New work waits until it is resumed. Nothing is lost.",
            f"Resume it on the queue page, or with: manage.py harbor unpause {name}",
            Level.NOTICE,
        )


def _workers(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.nodes is None:
        return
    if not state.nodes:
        silent = state.last_heartbeat
        since = f"; the last heartbeat came {ago(silent)}" if silent is not None else ""
        yield Finding(
            "no_worker",
            f"No worker is alive{since}.",
            "Reports are stored, but no status is refreshed and no job runs.",
            f"Start one with: {WORKER if is_service() else ITS_WORKER}",
        )
        return
    if conf.in_process:
        return
    tick_age = state.last_tick
    if tick_age is None or tick_age > 2 * conf.interval + SLACK_SECONDS:
        when = "ever since Redis was emptied" if tick_age is None else f"for {age(tick_age)}"
        yield Finding(
            "ticks_stopped",
            f"No worker has looked for work {when}, and {_alive(state)}.",
            "Executions wait although workers are alive: beat sends no ticks, or no worker takes the queue "
            "harbor_refresh.ticks.",
            "Check that beat runs. Check that a worker takes that queue: start it without -Q, or name all four "
            "queues.",
        )


def _beat(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.schedule is None:
        return
    rows = {row.task: row for row in state.schedule}
    for planned in ROWS:
        row = rows.get(planned.task)
        if row is None:
            yield Finding(
                "schedule_row_missing",
                f"Beat's schedule has no row “{planned.name}”.",
                f"What it does is not done: {planned.description}",
                "Create it again: type manage.py migrate, or restart beat.",
            )
        elif not row.is_enabled:
            yield Finding(
                "schedule_row_disabled",
                f"“{row.name}” is disabled in beat's schedule.",
                f"What it does is not done: {planned.description}",
                "Enable it in the admin, under Periodic tasks.",
            )
    shortest = min((row.interval for row in state.schedule if row.is_enabled and row.interval), default=None)
    silent = state.beat_silent
    if shortest is None or (silent is not None and silent <= 3 * shortest + SLACK_SECONDS):
        return
    yield Finding(
        "beat_silent",
        "Beat has never sent anything." if silent is None else f"Beat has sent nothing for {age(silent)}.",
        "New reports are still refreshed. What runs by schedule does not run: recovery from crashes, reconcile, "
        "the sweep, and retries of notifications.",
        f"Start one with: {BEAT if is_service() else ITS_BEAT}",
    )


def _database_pause(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.pause:
        yield Finding(
            "database_was_away",
            "A worker found PostgreSQL away a moment ago, so no worker claims for "
            f"{pacing.DATABASE_PAUSE_SECONDS:g} s.",
            "Executions wait in Redis. The outage does not count as a failed attempt of any of them.",
            "Do nothing if this passes. If it stays, look at the database, and at its max_connections.",
        )


def _waiting(state: State, conf: Refresh) -> Iterator[Finding]:
    oldest, backlog = state.oldest_waiting, state.backlog
    if state.nodes and oldest is not None and oldest > max(60.0, 2 * conf.interval):
        yield Finding(
            "oldest_waits",
            f"An execution has waited for {age(oldest)}, with {backlog:,} on the queue.",
            "Statuses are late by as much. There are too few workers, or they hang, or they wait for locks.",
            "Look at the log of the workers, and add workers. To see what an execution waits for: "
            "manage.py harbor why ID",
        )
    elif backlog is not None and backlog > LONG_BACKLOG:
        yield Finding(
            "long_backlog",
            f"{backlog:,} executions wait.",
            "The workers refresh them one batch after another. A long backlog loses nothing.",
            "Add workers if it grows.",
            Level.NOTICE,
        )


def _quarantined(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.quarantined:
        yield Finding(
            "quarantined",
            f"{plural(state.quarantined, 'execution')} could not be refreshed and "
            f"{'is' if state.quarantined == 1 else 'are'} in quarantine.",
            "Their status may be out of date. Each is tried again by itself "
            f"{age(pacing.QUARANTINE_SECONDS)} after it was quarantined.",
            "Read the reason of each under Quarantine in the admin. Repair the cause, then release them.",
        )


def _deliveries(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.dead_letters:
        yield Finding(
            "dead_letters",
            f"{plural(state.dead_letters, 'notification')} could not be delivered and "
            f"{'was' if state.dead_letters == 1 else 'were'} given up.",
            "The receivers do not know of these status changes.",
            "Read the reasons under Deliveries in the admin, then send them again.",
        )


def _reconcile(state: State, conf: Refresh) -> Iterator[Finding]:
    if state.schedule is None:
        return
    since = state.last_reconcile
    every = next((row.interval for row in state.schedule if row.task == "tasks.reconcile"), None)
    late = 3 * (every or 60) + SLACK_SECONDS
    if since is not None and since > late and (state.backlog or 0) <= POSTPONING_BACKLOG:
        yield Finding(
            "reconcile_late",
            f"Reconcile has not run to its end for {age(since)}.",
            "Marks that were lost stay lost until it runs.",
            "Check beat and the workers, or run it now: manage.py harbor repair drift",
        )
    if state.drifted and since is not None and since <= late:
        yield Finding(
            "drift",
            f"{plural(state.drifted, 'status', 'statuses')} differed from their tasks {ago(since)}; "
            "reconcile found them and marked them for a refresh.",
            "Their marks were lost, as after an outage of Redis or a kill.",
            "Do nothing. If every pass finds some, look for “Could not mark” in the log of the web processes and "
            "the workers.",
            Level.NOTICE,
        )


def _dead(state: State, conf: Refresh) -> Iterator[Finding]:
    dead = [node for node in state.dead or () if node.silent <= LATELY_SECONDS]
    if not dead or not state.nodes:
        return
    yield Finding(
        "worker_died",
        f"{plural(len(dead), 'worker process', 'worker processes')} died within the last ten minutes. "
        f"The last heartbeat of {dead[0].name} came {ago(dead[0].silent)}.",
        f"Its claims and jobs go back on their queues, for the other processes: {_alive(state)}.",
        "Do nothing if you killed it. If not, read its log, and look for the kernel's out-of-memory killer: dmesg",
        Level.NOTICE,
    )


def _alive(state: State) -> str:
    number = len(state.nodes or ())
    return f"{plural(number, 'worker process', 'worker processes')} {'is' if number == 1 else 'are'} alive"


RULES: tuple[Callable[[State, Refresh], Iterator[Finding]], ...] = (
    _servers,
    _workers,
    _beat,
    _database_pause,
    _waiting,
    _quarantined,
    _deliveries,
    _reconcile,
    _paused,
    _dead,
)
