"""The probes of workers and beat, against real workers."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import redis.exceptions
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from redis import Redis

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.local.redis import EmbeddedRedis
from harbor_refresh.management.commands import alive
from harbor_refresh.management.commands.alive import Verdict, Worker, judge_beat, judge_workers
from harbor_refresh.tasks.broker.celery_queues import JOBS, TICKS
from harbor_refresh.tasks.celery_tasks import MAX_WAITING
from harbor_refresh.tasks.checks import workers
from harbor_refresh.tasks.checks.facts import Facts
from harbor_refresh.tasks.news import samples, state
from harbor_refresh.tasks.pipeline import wakeup
from tests import servers
from tests.faults.cluster import Cluster, Member
from tests.faults.conftest import cluster  # noqa: F401  # a fixture
from tests.terminal import ran
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "redis")


def children(worker: Member) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(worker.process.pid)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


@pytest.mark.slow
def test_a_worker_must_answer_and_take_work(cluster: Cluster) -> None:  # noqa: F811
    """When it is stopped, its children go on, and their heartbeats with them. When its only child stands still, it
    answers, and takes one message more than it can begin."""
    worker = cluster.worker(concurrency=1, queues=[TICKS])
    wait_for(lambda: judge_workers().is_alive, "the worker to answer in time")
    os.kill(worker.process.pid, signal.SIGSTOP)
    silent = judge_workers()
    os.kill(worker.process.pid, signal.SIGCONT)
    wait_for(lambda: judge_workers().is_alive, "the worker to answer again")
    for child in children(worker):
        os.kill(child, signal.SIGSTOP)
    for _ in range(MAX_WAITING):
        wakeup.send("tasks.recover_stale")
    idle: list[Verdict] = []

    def is_blamed() -> bool:
        idle[:] = [judge_workers(seconds=1)]
        return "took none of the messages" in idle[0].why

    wait_for(is_blamed, "the worker to answer in time and to be blamed")
    for child in children(worker):
        os.kill(child, signal.SIGCONT)
    wait_for(lambda: judge_workers().is_alive, "the worker to take work again")
    assert (silent.is_alive, "no worker of" in silent.why) == (False, True)
    assert [one.is_alive for one in idle] == [False]


@pytest.mark.parametrize(
    ("first", "now", "messages", "is_sound"),
    [
        (Worker(5, 1, (JOBS,)), Worker(5, 1, (JOBS,)), {JOBS: 1}, False),
        (Worker(5, 1, (JOBS,)), Worker(5, 1, (JOBS,)), {JOBS: 0, TICKS: 9}, True),
        (Worker(5, 1, (JOBS,)), Worker(6, 1, (JOBS,)), {JOBS: 1}, True),
        (Worker(5, 0, (JOBS,)), Worker(5, 0, (JOBS,)), {JOBS: 1}, True),
        (Worker(5, 1, ("own",)), Worker(5, 1, ("own",)), {JOBS: 1}, True),
    ],
    ids=["idle", "of another queue", "has begun one", "busy", "of a queue that is not ours"],
)
def test_a_worker_is_blamed_only_for_messages_that_it_could_take(
    first: Worker, now: Worker, messages: dict[str, int], is_sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([{"w": first}])
    monkeypatch.setattr(alive, "_ask", lambda names: next(answers, {"w": now}))
    monkeypatch.setattr(alive.channels, "messages", lambda queues: messages)
    assert (alive._idle(["w"], 0) == "") == is_sound


@pytest.mark.parametrize(
    ("question", "error"),
    [("channels.messages", QueueUnavailable("gone")), ("_answering", redis.exceptions.ConnectionError("gone"))],
)
def test_a_broker_that_is_down_says_nothing_of_the_workers(
    question: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it goes before or after the messages are counted."""

    def down(_: object) -> None:
        raise error

    monkeypatch.setattr(f"harbor_refresh.management.commands.alive.{question}", down)
    found = judge_workers()
    assert (found.is_alive, "the broker is down" in found.why) == (True, True)


@pytest.mark.parametrize(("seconds", "is_alive"), [(1, True), (40, True), (75, False), (None, False)])
def test_beat_is_judged_by_what_it_sent_last(seconds: int | None, is_alive: bool) -> None:
    sent = None if seconds is None else timezone.now() - timedelta(seconds=seconds)
    PeriodicTask.objects.update(last_run_at=None)
    PeriodicTask.objects.filter(task="tasks.recover_stale").update(last_run_at=sent)
    assert judge_beat().is_alive == is_alive


def test_a_beat_whose_broker_is_down_is_alive_and_sends_as_soon_as_it_is_there(
    cluster: Cluster,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is down from the start. A beat that hangs is found all the same."""
    PeriodicTask.objects.update(last_run_at=timezone.now() - timedelta(hours=1))
    IntervalSchedule.objects.update(every=1, period="seconds")
    broker = EmbeddedRedis(tmp_path / "broker")
    beat = cluster.beat(CELERY_BROKER_URL=broker.url)
    wait_for(lambda: beat.text().count("Couldn't apply scheduled task") > 1, "beat to try", log=beat.log)
    assert judge_beat().is_alive
    monkeypatch.setattr(workers, "SLACK_SECONDS", 0)
    beat.signal(signal.SIGSTOP)
    wait_for(lambda: not judge_beat().is_alive, "a beat that hangs to be found")
    beat.signal(signal.SIGCONT)
    with broker, Redis.from_url(broker.url) as waiting:
        wait_for(lambda: waiting.llen(TICKS), "beat to send", log=beat.log)
        wait_for(lambda: judge_beat().is_alive, "beat to be alive for a moment after it has sent", log=beat.log)


def test_a_beat_with_nothing_to_send_is_alive() -> None:
    PeriodicTask.objects.update(enabled=False, last_run_at=None)
    assert judge_beat().is_alive


def test_a_beat_with_the_schedule_of_celery_is_not_blamed_for_what_no_worker_has_done_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "has_rows", lambda: False)
    monkeypatch.setattr(workers, "FIRST_SAMPLE_SECONDS", -1)
    assert [one.is_serious() for one in workers.beat_alive(Facts())] == [False]
    assert judge_beat().is_alive
    samples.record(state.look())
    assert list(workers.beat_alive(Facts())) == []


def test_the_command_exits_with_1_and_one_line(database: str) -> None:
    env = os.environ | {
        "DATABASE_URL": servers.postgres.url_for(database),
        "DJANGO_SETTINGS_MODULE": "settings.test",
    }
    command = [sys.executable, "manage.py", "alive", "beat", "--json"]
    done = ran(command, env=env)
    assert (done.returncode, json.loads(done.stdout)["alive"]) == (1, False)
    assert "Beat has never sent anything" in done.stderr
    assert "Traceback" not in done.stderr
