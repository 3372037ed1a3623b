"""harbor why: each place where an execution may be, and what ends it."""

import re
from io import StringIO
from time import monotonic
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings
from redis import Redis

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.quarantines import quarantine
from harbor_refresh.executions.lifecycle.rollup import refresh
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.tasks.models.job import Node
from harbor_refresh.tasks.queue.members import member
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.command_output import data, said
from tests.integration.concurrency import transaction_held_open
from tests.integration.redis_state import whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")


@pytest.fixture
def wrong(redis: Redis) -> Execution:
    """Its task succeeded, nothing marked it, and no worker lives."""
    execution = create(NewExecution("SCAN", tasks=[NewTask()]))
    Task.objects.filter(execution=execution).update(status="Success", status_code=3, end_time="2026-01-01T00:00Z")
    redis.flushall()
    return execution


def why(execution: Execution) -> dict[str, Any]:
    answer: dict[str, Any] = data("harbor", "why", execution.pk)
    return answer


def findings(execution: Execution) -> list[str]:
    return list(why(execution)["findings"])


def finding_of_a_claim(execution: Execution, begun: float) -> str:
    """The only finding. It says AGE in the place of the age of its claim, which is no more than the time since
    `begun`."""
    (finding,) = findings(execution)
    seconds = r"\b(\d+) s\b"
    age = re.search(seconds, finding)
    assert age, finding
    assert int(age[1]) <= monotonic() - begun + 1
    return re.sub(seconds, "AGE", finding, count=1)


def name_of(execution: Execution) -> str:
    return member(execution.pk, execution.vendor_type)


def test_an_execution_that_is_nowhere_has_lost_its_mark(wrong: Execution, redis: Redis) -> None:
    assert why(wrong) == {
        "execution_id": wrong.pk,
        "vendor": "SCAN",
        "status": "Running",
        "true_status": "Success",
        "is_right": False,
        "is_locked": False,
        "quarantine": None,
        "on_the_queue": False,
        "failures": 0,
        "claims": [],
        "findings": [
            "It is neither on the queue nor claimed, so its mark was lost. Reconcile finds it within a minute, if "
            "beat runs. "
            f"`harbor repair refresh {wrong.pk}` refreshes it now."
        ],
    }
    assert whole_redis(redis) == {}


def test_people_get_the_status_the_status_by_its_tasks_and_the_findings(wrong: Execution) -> None:
    out = StringIO()
    call_command("harbor", "why", str(wrong.pk), stdout=out)
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert [line for line in lines if line][:3] == [
        f"execution {wrong.pk} SCAN",
        "status Running",
        "by its tasks Success",
    ]
    assert lines[-1].startswith("It is neither on the queue nor claimed")


def test_on_the_queue_the_workers_and_the_pause_are_what_it_waits_for(
    wrong: Execution, queue: ExecutionQueue, redis: Redis
) -> None:
    queue.mark([name_of(wrong)])
    assert findings(wrong) == ["It is on the queue, and no worker sends a heartbeat. Start a worker."]
    queue.heartbeat("n1")
    (tickless,) = findings(wrong)
    assert tickless.startswith("It is on the queue, and no worker takes the queue harbor_refresh.ticks.")
    Node.objects.create(pk=1, name="n", slots=1, queues=["harbor_refresh", "harbor_refresh.ticks"])
    assert findings(wrong) == ["It is on the queue, one of 1, with 0 in flight. The next ticks claim it."]
    now = queue.stats().now
    redis.hset(queue.keys.presence, "since", now - 3_600 * 1_000_000)
    redis.set(queue.keys.ticked, now - 600 * 1_000_000)
    (tickless,) = findings(wrong)
    assert tickless.startswith("It is on the queue, and no worker has looked for work for 600 s: no worker takes ")
    queue.pause()
    (paused,) = findings(wrong)
    assert paused.startswith("It is on the queue. No node claims for ")
    assert paused.endswith(" ms more, because the database was down.")


def test_in_a_claim_it_waits_for_a_worker_or_is_worked_on_or_its_node_is_silent(
    wrong: Execution, queue: ExecutionQueue, redis: Redis
) -> None:
    begun = monotonic()
    queue.mark([name_of(wrong)])
    claim = queue.claim("n1", 1).claim
    assert finding_of_a_claim(wrong, begun) == "It was claimed AGE ago and waits for a worker that is free."
    queue.leave("n1")
    redis.zrem(queue.keys.nodes, "n1")  # it has been silent for long enough
    assert finding_of_a_claim(wrong, begun) == "It was claimed AGE ago and waits for a worker that is free."
    queue.take_over(claim, "n2")
    assert why(wrong)["claims"] == [{"node": "n2", "state": "works"}]
    assert finding_of_a_claim(wrong, begun) == (
        "n2 has refreshed it for AGE. Recovery releases a claim that is older than 300 s."
    )
    redis.zrem(queue.keys.nodes, "n2")
    silent = "n2 claimed it AGE ago and is silent. Recovery releases it, if beat runs."
    assert finding_of_a_claim(wrong, begun) == silent


def test_failures_are_counted_beside_the_place(wrong: Execution, queue: ExecutionQueue) -> None:
    queue.mark([name_of(wrong)])
    queue.fail(queue.claim("n1", 1).claim)
    assert findings(wrong)[1:] == ["It failed 1 of 5 times; the log says why."]


def test_a_quarantine_is_told_with_its_reason_and_the_way_out(wrong: Execution) -> None:
    quarantine([wrong.pk], 5, reasons={wrong.pk: "a trigger refused it"})
    answer = why(wrong)
    assert (answer["quarantine"], answer["is_locked"]) == ("a trigger refused it", False)
    since, reason = answer["findings"]
    assert since.startswith("It is in quarantine since ")
    assert since.endswith(": 5 failures.")
    release = f"`harbor quarantine --release {wrong.pk}` tries it again."
    assert reason == f"The reason: a trigger refused it. {release}"


def test_a_row_that_another_transaction_has_locked_is_told(wrong: Execution) -> None:
    with transaction_held_open(lambda: Execution.objects.filter(pk=wrong.pk).update(status="Running")):
        first, *_ = findings(wrong)
    assert first == "Another transaction has locked its row. It is refreshed after that ends: look at pg_locks."
    assert not why(wrong)["is_locked"]


def test_a_status_that_is_right_or_set_by_hand_is_told_so(wrong: Execution) -> None:
    Execution.objects.filter(pk=wrong.pk).update(status="Success", end_time="2026-01-01T00:00Z")
    assert findings(wrong) == [f"Its status is what its tasks say: see `harbor show {wrong.pk}`."]
    assert findings(create(NewExecution("SCAN"))) == [
        "It has no tasks, so its status stays as it was set by hand."
    ]


def test_with_an_interval_of_zero_the_queue_is_not_looked_at(wrong: Execution, settings: Settings) -> None:
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0
    (finding,) = findings(wrong)
    assert finding.startswith("The interval is 0 or less, so the process that reports refreshes at once")


@pytest.mark.parametrize("design", ["scan", "lock", "upstream"])
def test_with_an_older_design_its_cycles_are_named(design: str, wrong: Execution, settings: Settings) -> None:
    settings.REFRESH_STRATEGY = design
    cycles = f"The strategy is {design}: each cycle refreshes what is marked, unless refreshing is paused."
    assert findings(wrong) == [cycles]
    assert why(wrong)["claims"] is None


def test_a_refresh_that_ends_between_the_two_looks_is_no_lost_mark(
    wrong: Execution, queue: ExecutionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    whereabouts = queue.whereabouts

    def refreshed_meanwhile(name: str) -> Any:
        refresh([wrong.pk])
        return whereabouts(name)

    monkeypatch.setattr(queue, "whereabouts", refreshed_meanwhile)
    assert findings(wrong) == [f"Its status is what its tasks say: see `harbor show {wrong.pk}`."]


def test_control_characters_of_a_reason_do_not_reach_the_terminal(wrong: Execution) -> None:
    quarantine([wrong.pk], 5, {wrong.pk: "row\x1b[31m is bad"})
    shown = said("harbor", "why", wrong.pk)
    assert "The reason: row\\x1b[31m is bad." in shown
    assert "\x1b" not in shown
