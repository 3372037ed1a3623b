"""Pause and resume: the rows, what a tick does meanwhile, and what is refused."""

from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.tasks import celery_tasks
from harbor_refresh.tasks.broker.celery_queues import DELIVERIES, JOBS, TICKS, WORK
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.models.state import MAX_REASON
from harbor_refresh.tasks.news import signals
from harbor_refresh.tasks.operations.pauses import pause, resume
from harbor_refresh.tasks.pipeline import wakeup
from harbor_refresh.tasks.pipeline.diagnosis import diagnose
from harbor_refresh.tasks.pipeline.dispatcher import dispatch
from harbor_refresh.tasks.pipeline.marks import mark
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.concurrency import at_once
from tests.integration.redis_state import Redis, whole_redis
from tests.integration.sample_executions import made

pytestmark = pytest.mark.usefixtures("database", "redis")

ALICE = Person("alice", Origin.ADMIN, "192.0.2.7")
BOB = Person("bob", Origin.TERMINAL, "a-host")


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each tick that is sent."""
    sent: list[int] = []
    monkeypatch.setattr(wakeup, "send_tick", lambda: sent.append(len(sent)))
    return sent


def rows() -> list[tuple[str, str, str]]:
    return list(Pause.objects.order_by("queue").values_list("queue", "by", "reason"))


def entries() -> list[tuple[str, str, str, str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("by", "verb", "kind", "target", "detail"))


def test_while_refreshing_is_paused_a_tick_claims_nothing_and_a_resume_sends_one(
    redis: Redis, woken: list[int]
) -> None:
    execution_queue().mark(f"{number}:A" for number in range(1, 101))
    pause(WORK, ALICE, "upgrade")
    published: list[Any] = []
    assert dispatch(published.extend, 0) == 0
    assert (published, redis.scard(execution_queue().keys.queue)) == ([], 100)
    assert (resume(WORK, BOB), woken) == (True, [0])
    assert dispatch(published.extend, 0) == 100


def test_marks_are_taken_meanwhile_and_send_few_ticks(redis: Redis, woken: list[int]) -> None:
    """Each tick of a mark that would delete the wake key would let the next mark send another tick."""
    pause(WORK, ALICE)
    for number in range(1, 31):
        mark([f"{number}:A"])
        redis.persist(execution_queue().keys.wake)  # so many marks may take longer than a tick is waited for
        if woken:
            dispatch(lambda claims: None, 0)
    assert (len(woken), redis.scard(execution_queue().keys.queue)) == (1, 30)


def test_what_is_claimed_already_is_refreshed(redis: Redis) -> None:
    from harbor_refresh.tasks.pipeline.refresher import refresh_claim

    execution, _ = made()
    mark([f"{execution.pk}:{execution.vendor_type}"])
    published: list[Any] = []
    dispatch(published.extend, 0)
    pause(WORK, ALICE)
    refresh_claim(published[0])
    assert "processing" not in whole_redis(redis)


def test_the_older_designs_get_no_cycle_meanwhile(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    cycles: list[int] = []
    monkeypatch.setattr(celery_tasks, "broadcast", lambda: cycles.append(1))
    pause(WORK, ALICE)
    celery_tasks.claim_batch()
    assert cycles == []
    resume(WORK, ALICE)
    celery_tasks.claim_batch()
    assert cycles == [1]


def test_the_first_pause_stands_and_each_change_has_one_entry_in_the_log_of_actions(woken: list[int]) -> None:
    assert pause(JOBS, ALICE, "upgrade") is True
    assert pause(JOBS, BOB, "another reason") is False
    assert rows() == [(JOBS, "alice", "upgrade")]
    assert resume(JOBS, BOB) is True
    assert resume(JOBS, BOB) is False
    assert rows() == []
    assert entries() == [
        ("alice", "pause", "queue", JOBS, "upgrade"),
        ("bob", "resume", "queue", JOBS, ""),
    ]


def test_of_many_that_pause_or_resume_at_once_one_does() -> None:
    assert sorted(at_once(*[lambda: pause(JOBS, ALICE)] * 6)) == [False] * 5 + [True]
    assert sorted(at_once(*[lambda: resume(JOBS, ALICE)] * 6)) == [False] * 5 + [True]
    assert [entry[1] for entry in entries()] == ["pause", "resume"]


def test_a_pause_that_is_rolled_back_tells_nothing() -> None:
    told: list[str] = []

    def listen(queue: str, **_: Any) -> None:
        told.append(queue)

    signals.queue_paused.connect(listen)
    with transaction.atomic():
        pause(JOBS, ALICE)
        transaction.set_rollback(True)
    assert (told, rows(), entries()) == ([], [], [])
    pause(DELIVERIES, ALICE)
    assert told == [DELIVERIES]


@pytest.mark.parametrize(
    ("queue", "reason", "said"),
    [
        (TICKS, "", "cannot be paused"),
        ("harbor_refresh.job", "", "no worker takes from a queue of that name; there are harbor_refresh.ticks, "),
        ("", "", "no worker takes"),
        (JOBS, "x" * (MAX_REASON + 1), "at most 500 characters"),
        (JOBS, "\x00", "takes text"),
    ],
)
def test_a_pause_of_what_cannot_be_paused_is_refused(queue: str, reason: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        pause(queue, ALICE, reason)
    assert (rows(), entries()) == ([], [])


def test_there_is_no_refreshing_to_pause_with_an_interval_of_zero(settings: Settings) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    with pytest.raises(Refused, match="the reporting process refreshes"):
        pause(WORK, ALICE)


def test_a_queue_that_a_worker_takes_from_can_be_paused_by_its_name() -> None:
    with pytest.raises(Refused):
        pause("examples", ALICE)
    node = Node.objects.create(id=1, name="w", slots=1, queues=[JOBS, "examples"])
    assert pause("examples", ALICE)
    node.queues = [JOBS]
    node.save()
    assert not pause("examples", ALICE), "it is paused already, and known without a worker"


def test_a_queue_that_has_jobs_can_be_paused_without_a_worker() -> None:
    _, (task,) = made()
    Job.objects.create(task_id=task, name="j", queue="examples", max_attempts=1)
    assert pause("examples", ALICE)


def test_a_reason_and_a_name_stay_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    pause(JOBS, Person("eve\nERROR harbor", Origin.API), "a\n2026 ERROR \x1b[31mfake")
    assert rows() == [(JOBS, "eve ERROR harbor", "a 2026 ERROR [31mfake")]
    assert "\n" not in caplog.messages[-1]


def test_why_says_that_refreshing_is_paused(redis: Redis) -> None:
    execution, _ = made()
    pause(WORK, ALICE)
    mark([f"{execution.pk}:{execution.vendor_type}"])
    assert any("`harbor unpause`" in one for one in diagnose(execution.pk).findings)
