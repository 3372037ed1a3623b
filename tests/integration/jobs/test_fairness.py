"""Executions take turns: an execution of many jobs does not hold up one that is started later (kombu#390)."""

from collections.abc import Iterator
from typing import Any

import pytest
from celery import chain, current_app
from django.db.models.functions import Now

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution, TrackedJob, sender, start
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.models.job import Job
from tests.integration.jobs.sample_jobs import Outbox, beats, begun

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def a_worker(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes one job at a time from the broker, which holds one more."""
    monkeypatch.setattr(sender, "EACH", 1)
    monkeypatch.setattr(sender, "FLOOR", 1)
    beats(slots=1)


def declared(name: str, **options: Any) -> Any:
    def nothing(job: Any, *args: Any) -> None:
        pass

    return current_app.task(base=TrackedJob, name=name, shared=False, **options)(nothing)


@pytest.fixture
def copy() -> Iterator[Any]:
    yield declared("a.copy")
    current_app.tasks.pop("a.copy", None)


def order(outbox: Outbox, most: int = 1_000) -> str:
    """Run one job after the other. Returns the first argument of each."""
    found = []
    while (messages := outbox.take()) and len(found) < most:
        for message in messages:
            its = begun(message)
            assert its
            found.append(str(its.args[0]))
            result = '"r"' if its.is_needed else None
            outcome = Outcome(its.run, Status.SUCCESS, result=result, is_needed=its.is_needed)
            assert take([outcome])
            sender.send_behind([its.queue], [outcome])
    return "".join(found)


def test_three_jobs_behind_many_are_among_the_next(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("a") for _ in range(10_000)])
    assert order(outbox, 200) == "a" * 200
    start("SCAN", jobs=[copy.s("b") for _ in range(3)])
    sender.send_all()
    outbox.messages.clear()
    Job.objects.filter(state="sent").update(state="waiting")
    sender.send_all()
    assert order(outbox, 8).count("b") == 3


def test_two_executions_take_turns_until_one_has_ended(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("a") for _ in range(8)])
    start("SCAN", jobs=[copy.s("b") for _ in range(4)])
    assert order(outbox) == "aababababaaa"


def test_a_weight_gives_two_turns_where_another_has_one(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x")])
    start("SCAN", jobs=[copy.s("a") for _ in range(9)])
    start("SCAN", jobs=[copy.s("b") for _ in range(9)], weight=2)
    run = order(outbox)[1:13]
    assert (run.count("a"), run.count("b")) == (4, 8)


def test_priority_comes_before_turns(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x").set(priority=5)])
    start("SCAN", jobs=[copy.s("a").set(priority=6) for _ in range(3)])
    start("SCAN", jobs=[copy.s("b").set(priority=5) for _ in range(3)])
    assert order(outbox) == "xbbbaaa"


def test_executions_of_a_tenant_share_its_turns(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x")])
    for _ in range(3):
        start("SCAN", jobs=[copy.s("a") for _ in range(3)], fair_by="tenant 7")
    start("SCAN", jobs=[copy.s("b") for _ in range(3)], fair_by="tenant 8")
    assert order(outbox) == "xababab" + "a" * 6


def test_a_tenant_shares_its_turns_within_a_limit(outbox: Outbox) -> None:
    copy = declared("a.limited", concurrency=1)
    start("SCAN", jobs=[copy.s("x")])
    for _ in range(2):
        start("SCAN", jobs=[copy.s("a") for _ in range(3)], fair_by="tenant 7")
    start("SCAN", jobs=[copy.s("b") for _ in range(3)], fair_by="tenant 8")
    current_app.tasks.pop("a.limited")
    assert order(outbox) == "xabababaaa"


def test_three_jobs_behind_a_limit_larger_than_the_room_are_among_the_next(copy: Any, outbox: Outbox) -> None:
    limited = declared("a.limited", concurrency=50, key=lambda job: job.args[1])
    start("SCAN", jobs=[limited.s("a", key) for _ in range(50) for key in ("x", "y", "z")])
    start("SCAN", jobs=[copy.s("b") for _ in range(3)])
    found = order(outbox)
    current_app.tasks.pop("a.limited")
    assert (len(found), found.rindex("b") < 15) == (153, True)


def test_what_is_added_comes_after_the_jobs_that_wait(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x")])
    grows = start("SCAN", jobs=[copy.s("a") for _ in range(2)], open=True)
    start("SCAN", jobs=[copy.s("b") for _ in range(6)])
    for _ in range(2):
        grows.add([copy.s("a") for _ in range(2)])
    assert order(outbox) == "xababbabababa"


def test_a_tenant_keeps_its_turns_when_its_execution_grows(copy: Any, outbox: Outbox) -> None:
    first = start("SCAN", jobs=[copy.s("x")], fair_by="tenant 7")
    assert TrackedExecution.objects.get(pk=first.pk).add([copy.s("y")]) == 1
    assert set(Job.objects.values_list("tenant", flat=True)) == {"tenant 7"}


def test_a_tenant_keeps_its_turns_when_its_execution_is_started_without_jobs(copy: Any, outbox: Outbox) -> None:
    start("SCAN", fair_by="tenant 7", open=True).add([copy.s("y")])
    assert Job.objects.get().tenant == "tenant 7"


def test_jobs_whose_time_comes_late_do_not_set_the_line_back(copy: Any, outbox: Outbox) -> None:
    """Else those that are started then would pass all that wait."""
    start("SCAN", jobs=[copy.s("later").set(countdown=3_600)])
    start("SCAN", jobs=[copy.s("a") for _ in range(300)])
    order(outbox, 250)
    Job.objects.filter(not_before__isnull=False).update(not_before=Now())
    sender.send_due()
    first = Job.objects.filter(state="waiting").order_by("turn").values_list("turn", flat=True).first()
    assert first
    assert first > 200_000_000
    start("SCAN", jobs=[copy.s("b") for _ in range(100)])
    outbox.messages.clear()
    Job.objects.filter(state="sent").update(state="waiting")
    sender.send_all()
    assert 8 <= order(outbox, 20).count("a") <= 12


def test_jobs_that_are_tried_again_take_turns_with_others(copy: Any, outbox: Outbox) -> None:
    failed = start("SCAN", jobs=[copy.s("a") for _ in range(40)])
    for _ in range(40):
        (message,) = outbox.take()
        its = begun(message)
        assert its
        assert take([Outcome(its.run, Status.ERROR)])
        sender.send_behind([its.queue])
    start("SCAN", jobs=[copy.s("b") for _ in range(10)])
    assert failed.retry_failed() == 40
    run = order(outbox, 18)
    assert run.count("b") >= 8


def test_the_jobs_of_a_chain_come_soon_after_those_before_them(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[chain(copy.s("a"), copy.si("b")) for _ in range(20)])
    found = order(outbox)
    assert (found.count("a"), found.count("b")) == (20, 20)
    assert "b" in found[:10]


def test_the_turns_go_on_over_pages(copy: Any, outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harbor_refresh.tasks.jobs.starting.creation.BATCH", 3)
    execution = start("SCAN", jobs=[copy.s("a") for _ in range(10)])
    turns = Job.objects.filter(task__execution=execution).order_by("pk").values_list("turn", flat=True)
    assert list(turns) == [1_000_000 * n for n in range(10)]


@pytest.mark.parametrize("options", [{"weight": 0}, {"weight": "2"}, {"weight": 1_001}, {"fair_by": ""}])
def test_what_is_no_weight_or_tenant_is_refused(options: dict[str, Any], copy: Any) -> None:
    with pytest.raises(Refused, match="takes"):
        start("SCAN", jobs=[copy.s("a")], **options)
