"""Limits of tasks, for all workers together: what users ask for in celery#5732 (a limit of what runs at once) and
celery#6591 (a rate for all workers). And turns of executions: one of many jobs does not hold up a later one
(kombu#390). The effects' own log is in tests/faults/test_limits_and_turns.py."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain, current_app
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from kombu import Queue

from harbor_refresh.executions.errors import Refused
from harbor_refresh.executions.models import AuditEntry
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import TrackedExecution, TrackedJob, limits, live_workers, sender, start
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.queries import why
from harbor_refresh.tasks.jobs.running.reaper import reap, release_runs_without_worker
from harbor_refresh.tasks.models import Limit, LimitPace
from harbor_refresh.tasks.models.job import Job, Node
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests.integration.admin_client import act, signed_in
from tests.integration.concurrency import at_once
from tests.integration.jobs.sample_jobs import (
    QUEUE,
    Outbox,
    Sent,
    beats,
    begun,
    database_port,
    send_all,
    worker_of_jobs,
)
from tests.integration.statements import plan
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "redis")

Declare = Callable[..., Any]


def nothing(job: Any, *args: Any, **kwargs: Any) -> None:
    pass


@pytest.fixture
def declare() -> Iterator[Declare]:
    """Declare a task with these options in this process."""
    names: list[str] = []

    def declared(name: str = "a.copy", **options: Any) -> Any:
        names.append(name)
        current_app.tasks.pop(name, None)
        return current_app.task(base=TrackedJob, name=name, shared=False, **options)(nothing)

    yield declared
    for name in names:
        current_app.tasks.pop(name, None)


@pytest.fixture(autouse=True)
def a_worker(database: str) -> None:
    beats(slots=1_000)


def places(name: str = "a.copy") -> int:
    """How many jobs have a place in the limit."""
    return Job.objects.filter(name=name, admitted=True).exclude(state="ended").count()


def different(outbox: Outbox) -> int:
    """How many jobs were sent. On a slow machine one may be overdue by now, and is sent again."""
    return len({one.job for one in outbox.take()})


def ends(message: Sent, status: Status = Status.SUCCESS, **options: Any) -> None:
    """It runs and ends, as the writer has it."""
    its = begun(message)
    assert its
    result = '"r"' if its.is_needed else None
    outcome = Outcome(its.run, status, result=result, is_needed=its.is_needed, **options)
    assert take([outcome])
    sender.send_behind([its.queue], [outcome])


def a_second_passes(seconds: float = 1) -> None:
    Limit.objects.update(swept_at=Now() - timedelta(hours=1))
    past = timedelta(seconds=seconds)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE execution_limit_pace SET next_at = next_at - %s", [past])


def test_no_more_jobs_are_sent_than_the_limit_lets_run_and_an_end_sends_the_next(
    declare: Declare, outbox: Outbox
) -> None:
    copy = declare(concurrency=3)
    start("SCAN", jobs=[copy.s(n) for n in range(7)])
    messages = outbox.take()
    assert len(messages) == 3
    last = Job.objects.order_by("pk").last()
    assert last
    assert why(last) == "limit a.copy 3/3"
    for expected in (1, 1, 1, 1, 0, 0):
        ends(messages.pop(0))
        sent = outbox.take()
        assert len(sent) == expected
        messages += sent
    send_all()
    assert outbox.take() == []


def test_what_uses_a_limit_and_what_waits_for_it_is_counted_by_their_indexes(
    declare: Declare, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, other = declare(concurrency=3), declare("a.scan", rate="5/m")
    start("SCAN", jobs=[*(copy.s(n) for n in range(7)), other.s()])
    message, *_ = outbox.take()
    assert begun(message)
    with CaptureQueriesContext(connection) as asked:
        found = {one.pop("name"): one for one in limits.in_use()}
    assert found == {
        "a.copy": {"concurrency": 3, "rate": None, "admitted": 3, "waiting": 4},
        "a.scan": {"concurrency": None, "rate": "5/m", "admitted": 1, "waiting": 0},
    }
    plans = [plan(one["sql"]) for one in asked.captured_queries[1:]]
    assert [("job_admitted" in one, "job_limited" in one) for one in plans] == [(True, False), (False, True)] * 2
    monkeypatch.setattr(limits, "MOST_COUNTED", 2)
    assert [(one["admitted"], one["waiting"]) for one in limits.in_use()] == [(2, 2), (1, 0)]


def test_each_key_has_a_limit(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=2, key=lambda job: job.kwargs["registry"])
    start("SCAN", jobs=[copy.s(registry=f"r{n % 3}") for n in range(12)])
    assert Counter(Job.objects.filter(state="sent").values_list("limit_key", flat=True)) == {
        "r0": 2,
        "r1": 2,
        "r2": 2,
    }
    waits = Job.objects.filter(state="waiting", limit_key="r1").order_by("pk").last()
    assert waits
    assert why(waits) == "limit a.copy r1 2/2"
    r1 = [one for one in outbox.take() if "r1" in one.kwargs]
    ends(r1[0])
    assert ["r1" in one.kwargs for one in outbox.take()] == [True]


def test_jobs_without_a_limit_and_of_other_limits_pass(declare: Declare, outbox: Outbox) -> None:
    copy, other, free = declare(concurrency=1), declare("a.scan", concurrency=1), declare("a.free")
    start("SCAN", jobs=[copy.s(), copy.s(), other.s(), other.s(), free.s(), free.s()])
    assert Counter(one.name for one in outbox.take()) == {"a.copy": 1, "a.scan": 1, "a.free": 2}


def test_the_most_urgent_job_of_a_key_is_the_next(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=1)
    start("SCAN", jobs=[copy.s("first"), copy.s("second"), copy.s("urgent").set(priority=0)])
    start("SCAN", jobs=[copy.s("late").set(priority=9)])
    (first,) = outbox.take()
    ends(first)
    assert "second" in outbox.messages[0].args
    Job.objects.filter(args=["late"]).update(priority=-1)
    ends(outbox.take()[0])
    assert "late" in outbox.messages[0].args


def test_the_places_of_a_dead_worker_are_free_with_its_jobs(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=2)
    start("SCAN", jobs=[copy.s(n) for n in range(4)])
    for message in outbox.take():
        assert begun(message)
    Node.objects.all().delete()
    beats(2, slots=100)
    assert release_runs_without_worker() == 2
    assert places() == 2
    assert sorted(one.args for one in outbox.take()) == ["[0]", "[1]"], "released jobs come next"


def test_a_stop_gives_the_places_to_others(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=2)
    first = start("SCAN", jobs=[copy.s("a") for _ in range(3)])
    start("SCAN", jobs=[copy.s("b") for _ in range(3)])
    outbox.take()
    first.stop()
    a_second_passes()
    send_all()
    assert [one.args for one in outbox.take()] == ['["b"]'] * 2


def test_a_retry_that_waits_gives_its_place_back(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=1)
    start("SCAN", jobs=[copy.s("a"), copy.s("b")])
    ends(outbox.take()[0], Status.SCHEDULED, delay=3_600.0)
    (b,) = outbox.take()
    assert "b" in b.args
    Job.objects.filter(not_before__isnull=False).update(not_before=Now())
    a_second_passes()
    send_all()
    assert outbox.take() == []
    ends(b)
    assert ["a" in one.args for one in outbox.take()] == [True]


def test_jobs_of_a_paused_queue_get_no_place(declare: Declare, outbox: Outbox) -> None:
    copy = declare(rate="1000/s")
    pause(QUEUE, Person("a person", Origin.API))
    start("SCAN", jobs=[copy.s(n) for n in range(5)])
    a_second_passes()
    send_all()
    assert (places(), outbox.take()) == (0, [])
    assert not LimitPace.objects.exists()
    resume(QUEUE, Person("a person", Origin.API))
    a_second_passes()
    send_all()
    assert len(outbox.take()) == 5


def test_a_job_behind_one_of_a_paused_queue_says_so(declare: Declare, outbox: Outbox) -> None:
    beats(2, name="another worker", queues=["fast"])
    copy = declare(rate="60/m")
    pause(QUEUE, Person("ann", Origin.API))
    start("SCAN", jobs=[copy.s(1), copy.s(2).set(queue="fast")])
    a_second_passes()
    send_all()
    assert outbox.take() == []
    said = f"the next job of its limit is in the queue {QUEUE}, which is paused by ann"
    assert why(Job.objects.get(queue="fast")) == said


def test_a_job_of_a_chain_waits_for_its_turn_and_then_for_its_limit(declare: Declare, outbox: Outbox) -> None:
    copy, merge = declare(), declare("a.merge", concurrency=1)
    start("SCAN", jobs=[chain(copy.s(n), merge.si(n)) for n in range(3)])
    for message in outbox.take():
        ends(message)
    assert [one.name for one in outbox.messages] == ["a.merge"]
    ends(outbox.take()[0])
    assert [one.args for one in outbox.take()] == ["[1]"]


def test_a_rate_lets_jobs_begin_one_after_the_other(declare: Declare, outbox: Outbox) -> None:
    copy = declare(rate="60/m")
    start("SCAN", jobs=[copy.s(n) for n in range(4)])
    for _ in range(3):
        (message,) = outbox.take()
        ends(message)
        assert outbox.take() == [], "a second has not passed"
        last = Job.objects.order_by("pk").last()
        assert last
        assert why(last) == "rate a.copy 60/m"
        a_second_passes()
        send_all()


def test_a_worker_whose_code_declares_no_limit_admits_jobs_each_second(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=1)
    start("SCAN", jobs=[copy.s(), copy.s()])
    assert different(outbox) == 1
    limits.change("a.copy", {"concurrency": 2}, "ann")
    a_second_passes()
    worker = worker_of_jobs()
    worker._beat()
    worker._look_after_jobs(1)
    assert different(outbox) == 1


@pytest.mark.parametrize("knows_all", [True, False])
def test_a_worker_sends_what_it_admits_to_each_queue_that_its_app_may_have(
    knows_all: bool, declare: Declare, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers of that queue do not look at the limit for a moment. Else its rate would be used up for jobs
    that are sent by none."""
    copy = declare(rate="60/m")
    start("SCAN", jobs=[copy.s(n) for n in range(2)])
    assert different(outbox) == 1
    a_second_passes()
    worker = worker_of_jobs()
    worker._consumer.app.amqp.queues.consume_from = ["another"]
    monkeypatch.setitem(current_app.conf, "task_create_missing_queues", knows_all)
    monkeypatch.setitem(vars(current_app.amqp), "queues", {"another": Queue("another")})
    worker._beat()
    worker._look_after_jobs(1)
    assert [one.args for one in outbox.take()] == (["[1]"] if knows_all else [])


def test_expired_jobs_use_up_no_rate(declare: Declare, outbox: Outbox) -> None:
    """They may have come while workers were down, and others expire behind them."""
    copy = declare(rate="1/h")
    pause(QUEUE, Person("a person", Origin.API))
    start("SCAN", jobs=[copy.s(n).set(expires=3_600) for n in range(7)])
    past = Job.objects.filter(args__0__lt=5)
    past.update(options={"expires": "2026-01-01T00:00:00+00:00"})
    resume(QUEUE, Person("a person", Origin.API))
    a_second_passes()
    send_all()
    for number in range(5):
        (message,) = outbox.take()
        assert message.args == f"[{number}]"
        ends(message, Status.STOPPED)
    (message,) = outbox.take()
    assert message.args == "[5]"
    ends(message)
    a_second_passes()
    send_all()
    assert outbox.take() == [], "an hour has not passed"


def test_a_pace_of_the_past_is_forgotten(declare: Declare, outbox: Outbox) -> None:
    copy = declare(rate="1/d", key=lambda job: job.args[0])
    start("SCAN", jobs=[copy.s("a"), copy.s("b")])
    LimitPace.objects.filter(key="a").update(next_at=Now() - timedelta(hours=2))
    reap()
    assert [one.key for one in LimitPace.objects.all()] == ["b"]


def test_a_rate_that_is_raised_counts_at_once(declare: Declare, outbox: Outbox) -> None:
    copy = declare(rate="1/d")
    start("SCAN", jobs=[copy.s(n) for n in range(3)])
    assert different(outbox) == 1
    assert limits.change("a.copy", {"rate": 60, "per": 60}, "a person")
    a_second_passes()
    send_all()
    assert different(outbox) == 1
    limits.change("a.copy", {"concurrency": 5}, "a person")
    send_all()
    assert outbox.take() == [], "a limit of another kind leaves the pace"


@pytest.mark.parametrize("limit", [{"concurrency": 1}, {"rate": "60/m"}], ids=["concurrency", "rate"])
def test_a_clock_of_the_database_that_goes_back_holds_up_no_limit(
    limit: dict[str, Any], declare: Declare, outbox: Outbox
) -> None:
    """After a failover to a server with another clock, the moments of before are in the future."""
    copy = declare(**limit)
    start("SCAN", jobs=[copy.s(n) for n in range(3)])
    assert different(outbox) == 1
    hour = timedelta(hours=1)
    Limit.objects.filter(rate=None).update(concurrency=2)
    Limit.objects.update(swept_at=Now() + hour)
    LimitPace.objects.update(next_at=Now() + hour)
    for more in (1, 0):
        send_all()
        assert different(outbox) == more


def test_while_workers_are_down_a_rate_saves_up_two_seconds_at_most(declare: Declare, outbox: Outbox) -> None:
    copy = declare(rate="10/s")
    start("SCAN", jobs=[copy.s(n) for n in range(100)])
    for _ in range(60):
        a_second_passes()
        send_all()
    assert different(outbox) == 20


def test_the_screen_of_limits_changes_and_resets_them_with_an_entry_in_the_log(
    declare: Declare, outbox: Outbox
) -> None:
    start("SCAN", jobs=[declare(concurrency=1, rate="5/h").s(n) for n in range(3)])
    client = signed_in("view_limit", "change_limit", "view_pause")
    page = "/admin/harbor_tasks/limit/"
    assert "1 at once, 5/h" in client.get(page).content.decode()
    form = {"concurrency": "2", "rate": "", "per": "60", "_save": "Save"}
    assert client.post(f"{page}a.copy/change/", form).status_code == 302
    a_second_passes()
    send_all()
    assert different(outbox) == 2
    declare(concurrency=1, rate="6/h")
    limits.write_declared()
    assert Limit.objects.get(name="a.copy").concurrency == 2, "newer code changes nothing that a person has set"
    shown = client.get("/admin/harbor_tasks/pause/").content.decode()
    assert "Limits of jobs" in shown
    assert re.search(r"a\.copy</a>.*?>\s*2\s*<.*?>\s*2\s*<.*?>\s*1\s*<", shown, re.DOTALL)
    assert act(client, page, "reset", ["a.copy"]).status_code == 302  # type: ignore[list-item]
    found = Limit.objects.get(name="a.copy")
    assert (found.concurrency, found.rate, found.per) == (1, 6, 3_600)
    assert [(one.verb, one.kind, one.target) for one in AuditEntry.objects.order_by("pk")] == [
        ("change", "limit", "a.copy")
    ] * 2
    viewer = Client()
    assert viewer.get(page).status_code == 302


def test_a_worker_with_newer_code_changes_the_limit(declare: Declare, outbox: Outbox) -> None:
    start("SCAN", jobs=[declare(concurrency=1).s()])
    start("SCAN", jobs=[declare(concurrency=5, rate="7/h").s()])
    assert Limit.objects.get(name="a.copy").concurrency == 1, "a web process may be newer than the workers"
    limits.write_declared()
    found = Limit.objects.get(name="a.copy")
    assert (found.concurrency, found.rate, found.per) == (5, 7, 3_600)


def test_a_worker_that_starts_before_the_database_is_there_changes_the_limit_later(
    declare: Declare, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("SCAN", jobs=[declare(concurrency=1).s()])
    declare(concurrency=5)
    monkeypatch.setenv(live_workers.ID, "")
    worker = worker_of_jobs()
    its = worker._consumer
    its.hostname, its.app.tasks = "a worker", current_app.tasks
    with database_port() as port:
        port.down()
        worker.start(its)
        port.back()
        try:
            wait_for(lambda: Limit.objects.get(name="a.copy").concurrency == 5, "the new limit", seconds=30)
        finally:
            worker.stop()


def test_many_processes_that_admit_at_once_admit_no_more_than_the_limit(declare: Declare, outbox: Outbox) -> None:
    copy = declare(concurrency=10)
    outbox.is_down = True
    start("SCAN", jobs=[copy.s(n) for n in range(200)])
    outbox.is_down = False
    ids = list(Job.objects.values_list("pk", flat=True))
    assert places() == 10
    most: list[int] = []

    def end_and_admit(mine: list[int]) -> None:
        for pk in mine:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE execution_job SET state = 'ended' WHERE task_id = %s AND admitted", [pk])
            sender.admit([pk])
            most.append(places())

    at_once(*[lambda mine=ids[n::4]: end_and_admit(mine) for n in range(4)])  # type: ignore[misc]
    assert max(most) == 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"concurrency": 0}, "concurrency takes a whole number from 1 to 1,000,000, and got 0"),
        ({"rate": "100"}, 'rate takes text as "10/s", "100/m", "1000/h" or "5/d", and got \'100\''),
        ({"concurrency": 1, "key": "registry"}, "key takes a function of the job, and got 'registry'"),
        ({"key": lambda job: 1}, "key is that of a limit: write concurrency=... or rate=... as well"),
    ],
)
def test_a_limit_that_is_none_is_refused_where_it_is_declared(options: dict[str, Any], says: str) -> None:
    team = Celery("a team", set_as_current=False)
    with pytest.raises(Refused) as refused:
        team.task(base=TrackedJob, name="a.copy", lazy=False, shared=False, **options)(nothing)
    assert says in str(refused.value)


def test_a_key_that_cannot_be_made_is_refused_at_start(declare: Declare) -> None:
    copy = declare(concurrency=1, key=lambda job: job.kwargs["registry"])
    with pytest.raises(Refused, match="its key cannot be made"):
        start("SCAN", jobs=[copy.s()])
    with pytest.raises(Refused, match="key takes text of at most 200 characters"):
        start("SCAN", jobs=[copy.s(registry="x" * 201)])


# turns of executions


@pytest.fixture
def one_at_a_time(a_worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker takes one job at a time from the broker, which holds one more."""
    monkeypatch.setattr(sender, "EACH", 1)
    monkeypatch.setattr(sender, "FLOOR", 1)
    beats(slots=1)


@pytest.fixture
def copy(declare: Declare, one_at_a_time: None) -> Any:
    return declare()


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
    send_all()
    outbox.messages.clear()
    Job.objects.filter(state="sent").update(state="waiting")
    send_all()
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


def test_executions_of_a_tenant_share_its_turns(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x")])
    for _ in range(3):
        start("SCAN", jobs=[copy.s("a") for _ in range(3)], fair_by="tenant 7")
    start("SCAN", jobs=[copy.s("b") for _ in range(3)], fair_by="tenant 8")
    assert order(outbox) == "xababab" + "a" * 6


@pytest.mark.usefixtures("one_at_a_time")
def test_a_tenant_shares_its_turns_within_a_limit(declare: Declare, outbox: Outbox) -> None:
    copy = declare("a.limited", concurrency=1)
    start("SCAN", jobs=[copy.s("x")])
    for _ in range(2):
        start("SCAN", jobs=[copy.s("a") for _ in range(3)], fair_by="tenant 7")
    start("SCAN", jobs=[copy.s("b") for _ in range(3)], fair_by="tenant 8")
    assert order(outbox) == "xabababaaa"


def test_what_is_added_comes_after_the_jobs_that_wait(copy: Any, outbox: Outbox) -> None:
    start("SCAN", jobs=[copy.s("x")])
    grows = start("SCAN", jobs=[copy.s("a") for _ in range(2)], open=True)
    start("SCAN", jobs=[copy.s("b") for _ in range(6)])
    for _ in range(2):
        grows.add([copy.s("a") for _ in range(2)])
    assert order(outbox) == "xababbabababa"


def test_a_tenant_keeps_its_turns_when_its_execution_grows(copy: Any) -> None:
    first = start("SCAN", jobs=[copy.s("x")], fair_by="tenant 7")
    assert TrackedExecution.objects.get(pk=first.pk).add([copy.s("y")]) == 1
    assert set(Job.objects.values_list("tenant", flat=True)) == {"tenant 7"}


def test_jobs_whose_time_comes_late_do_not_set_the_line_back(copy: Any, outbox: Outbox) -> None:
    """Else those that are started then would pass all that wait."""
    start("SCAN", jobs=[copy.s("later").set(countdown=3_600)])
    start("SCAN", jobs=[copy.s("a") for _ in range(300)])
    order(outbox, 250)
    Job.objects.filter(not_before__isnull=False).update(not_before=Now())
    sender.send_due([QUEUE])
    start("SCAN", jobs=[copy.s("b") for _ in range(100)])
    outbox.messages.clear()
    Job.objects.filter(state="sent").update(state="waiting")
    send_all()
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


@pytest.mark.parametrize("options", [{"weight": 0}, {"weight": "2"}, {"weight": 1_001}, {"fair_by": ""}])
def test_what_is_no_weight_or_tenant_is_refused(options: dict[str, Any], copy: Any) -> None:
    with pytest.raises(Refused, match="takes"):
        start("SCAN", jobs=[copy.s("a")], **options)


def test_a_tenant_keeps_its_turns_when_its_execution_is_started_without_jobs(copy: Any, outbox: Outbox) -> None:
    start("SCAN", fair_by="tenant 7", open=True).add([copy.s("y")])
    assert Job.objects.get().tenant == "tenant 7"


def test_three_jobs_behind_a_limit_larger_than_the_room_are_among_the_next(
    copy: Any, declare: Declare, outbox: Outbox
) -> None:
    limited = declare("a.limited", concurrency=50, key=lambda job: job.args[1])
    start("SCAN", jobs=[limited.s("a", key) for _ in range(50) for key in ("x", "y", "z")])
    start("SCAN", jobs=[copy.s("b") for _ in range(3)])
    found = order(outbox)
    assert (len(found), found.rindex("b") < 15) == (153, True)
