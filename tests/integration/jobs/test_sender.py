"""The sender: what waits in the database, what is with the broker, and what is sent again."""

import json
import re
from contextlib import nullcontext
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock, PropertyMock

import psycopg
import pytest
from celery import current_app
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import sender, sql
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.queries import why
from harbor_refresh.tasks.jobs.starting.declarations import NewJob
from harbor_refresh.tasks.models import Pause
from harbor_refresh.tasks.models.job import Job, JobInput
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests import servers
from tests.integration.concurrency import one_after_the_other
from tests.integration.jobs.sample_jobs import (
    NODE,
    QUEUE,
    Outbox,
    beats,
    begun,
    in_a_row,
    job,
    nothing_has_begun_for,
    recorded,
    rows,
    send_all,
    sent_before,
    tasks,
)
from tests.integration.statements import plan
from tests.started import start

pytestmark = pytest.mark.usefixtures("database")

publish = sender._publish  # the outbox takes its place


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker holds four jobs of a queue, or three for each slot of its workers."""
    monkeypatch.setattr(sender, "FLOOR", 4)
    monkeypatch.setattr(sender, "EACH", 3)


def ten() -> list[str]:
    return [f"j{number}" for number in range(10)]


def test_a_backlog_waits_in_the_database_and_the_broker_holds_a_few(outbox: Outbox) -> None:
    recorded(*ten())
    assert outbox.taken() == [(name, 0) for name in ten()[:4]]
    assert rows()["j4"] == ("waiting", 0)
    send_all()
    assert outbox.taken() == [], "the broker holds as many as there is room for"


def test_there_is_room_for_each_slot_of_the_workers_of_a_queue(outbox: Outbox) -> None:
    beats(1, slots=2)
    beats(2, slots=1, queues=[QUEUE, "another"])
    beats(3, slots=50, queues=["another"])
    recorded(*ten())
    assert outbox.taken() == [(name, 0) for name in ten()[:9]]


def test_the_next_jobs_are_sent_when_half_of_the_room_is_free(outbox: Outbox) -> None:
    beats(slots=1)
    recorded(*ten())
    first = outbox.take()
    assert begun(first[0])
    sender.send([QUEUE])
    assert outbox.taken() == []
    assert begun(first[1])
    sender.send([QUEUE])
    assert outbox.taken() == [("j4", 0), ("j5", 0)]


def test_a_job_for_later_is_sent_when_its_time_has_come(outbox: Outbox) -> None:
    recorded("soon", options={"countdown": 60})
    send_all()
    assert outbox.taken() == []
    assert why(job("soon")).startswith("its time is in ")
    Job.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    send_all()
    assert outbox.taken() == [("soon", 0)]


def test_sent_jobs_of_a_queue_wait_again_when_it_is_paused_and_each_begins_once(outbox: Outbox) -> None:
    beats()
    recorded("a", "b")
    old, running = outbox.take()
    assert begun(running)
    pause(QUEUE, Person("a person", Origin.API))
    assert rows() == {"a": ("waiting", 0), "b": ("running", 1)}
    assert begun(old) is None
    send_all()
    assert outbox.take() == []
    resume(QUEUE, Person("a person", Origin.API))
    send_all()
    (new,) = outbox.take()
    assert begun(old)
    assert begun(new) is None
    assert rows() == {"a": ("running", 1), "b": ("running", 1)}


def test_a_pause_waits_for_a_pick_that_is_under_way(outbox: Outbox) -> None:
    person = Person("a person", Origin.API)
    pause(QUEUE, person)
    recorded("j")
    resume(QUEUE, person)
    sends, pauses = lambda: sender.send([QUEUE]), lambda: pause(QUEUE, person)
    assert one_after_the_other(sends, pauses) == (None, True)
    assert len(outbox.take()) == 1
    assert rows() == {"j": ("waiting", 0)}


def test_a_job_that_is_sent_in_spite_of_a_pause_waits_after_the_next_pass(outbox: Outbox) -> None:
    """As by a pick that had not seen the pause, or because another transaction held the job."""
    recorded("j")
    (message,) = outbox.take()
    Pause.objects.create(queue=QUEUE, by="a person")
    send_all()
    assert rows() == {"j": ("waiting", 0)}
    assert begun(message) is None


def test_why_counts_the_jobs_that_come_before_one_in_its_queue(outbox: Outbox) -> None:
    beats(slots=1)
    recorded(*ten())
    recorded("takes turns")
    recorded("last", options={"priority": 9})
    found = {
        name: why(job(name)).partition(" jobs of the queue ")[0] for name in ("j4", "takes turns", "j6", "last")
    }
    assert found == {"j4": "0", "takes turns": "1", "j6": "3", "last": "7"}


def test_a_broker_that_is_down_keeps_no_caller_and_the_jobs_are_sent_when_it_is_back(outbox: Outbox) -> None:
    outbox.is_down = True
    recorded("j")
    outbox.is_down = False
    assert rows() == {"j": ("sent", 0)}
    beats()
    nothing_has_begun_for(sender.PATIENCE_SECONDS + 1)
    sent_before(sender.PATIENCE_SECONDS + 1, "j")
    send_all()
    assert outbox.taken() == [("j", 0)]


def test_a_job_whose_message_cannot_be_made_ends_although_the_broker_goes_down(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("a", "b")
    picked = [astuple(replace(one, options=json.dumps(one.options))) for one in outbox.take()]
    producer = Mock(publish=Mock(side_effect=[TypeError("no"), ConnectionError("the broker is down")]))
    monkeypatch.setattr(sender, "batch_producer", lambda: nullcontext(producer))
    with pytest.raises(ConnectionError):
        publish(picked)
    assert rows() == {"a": ("ended", 0), "b": ("sent", 0)}
    assert tasks()["a"][3] == "its message cannot be made: TypeError: no"


def test_a_job_is_overdue_only_while_workers_of_its_queue_have_idle_slots(outbox: Outbox) -> None:
    """Plain tasks keep a slot busy as well."""
    recorded("j")
    outbox.take()
    sent_before(sender.PATIENCE_SECONDS + 1, "j")
    send_all()
    assert (outbox.take(), why(job("j"))) == ([], f"no live worker takes the queue {QUEUE}")
    for busy, comes in ((1, False), (0, True)):
        beats(slots=1, busy=busy)
        nothing_has_begun_for(sender.PATIENCE_SECONDS + 1)
        assert re.fullmatch(rf"sent \d+ s ago, {busy} of 1 slots of its workers are busy", why(job("j")))
        send_all()
        assert bool(outbox.take()) == comes


@pytest.mark.parametrize(
    ("silence", "sent_ago", "comes"),
    [(4, 60, False), (6, 6, True), (20, 6, False), (20, 11, True), (86_400, 299, False), (86_400, 301, True)],
)
def test_while_no_job_begins_jobs_are_sent_again_less_and_less_often_however_often_each_was_sent(
    silence: float, sent_ago: float, comes: bool, outbox: Outbox
) -> None:
    beats()
    recorded("j")
    outbox.take()
    nothing_has_begun_for(silence)
    Job.objects.update(resent=8)
    sent_before(sent_ago, "j")
    send_all()
    assert bool(outbox.take()) == comes


def test_a_message_lost_after_a_quiet_day_is_sent_again_within_seconds(outbox: Outbox) -> None:
    beats()
    recorded("j")
    outbox.take()
    nothing_has_begun_for(86_400)
    comes = []
    for seconds in (4, 6, 6, 11):
        sent_before(seconds, "j")
        send_all()
        comes.append(bool(outbox.take()))
    assert comes == [False, True, False, True]


def test_a_job_that_needs_others_expires_so_long_after_it_was_sent_first_whatever_happens_to_it_then(
    outbox: Outbox,
) -> None:
    """Its message never expires: the begin looks at its row."""
    beats()
    jobs = [NewJob("a.job", job_id="a"), NewJob("b.job", job_id="b", options={"expires": 2_000.5, "priority": 3})]
    start("SCAN", [in_a_row(*jobs, takes=JobInput.NOTHING)])
    report([Report(outbox.take()[0].task_id, "Success", 0)])
    send_all()
    sent_at = job("b").sent_at
    assert sent_at
    sent_before(1_000, "b")
    send_all()
    person = Person("a person", Origin.API)
    pause(QUEUE, person)
    send_all()
    resume(QUEUE, person)
    send_all()
    assert [one.options for one in outbox.take()] == [{"priority": 3}] * 3
    assert datetime.fromisoformat(job("b").options["expires"]) - sent_at == timedelta(seconds=2_000.5)


@pytest.mark.parametrize(("priority", "comes"), [(0, True), (5, False)])
def test_a_job_that_was_overtaken_is_sent_again_unless_by_a_more_urgent_one(
    priority: int, comes: bool, outbox: Outbox
) -> None:
    beats(busy=1)
    recorded("j", options={"priority": priority})
    outbox.take()
    sent_before(sender.PATIENCE_SECONDS + 1, "j")
    recorded("later")
    assert begun(outbox.take()[0])
    send_all()
    assert outbox.taken() == ([("j", 0)] if comes else [])


def has_begun_last(name: str) -> None:
    """A process of the worker notes that this job was the last to begin."""
    runs: dict[str, list[int]] = {name: [] for name in ("task_ids", "runs", "are_heard", "check_ins")}
    sql.run("look_at_runs", **runs, node=NODE, process=1, begun=[job(name).pk])


@pytest.mark.parametrize(
    ("priority", "state", "comes"), [(0, "ended", True), (0, "waiting", True), (5, "ended", False)]
)
def test_a_lost_job_is_sent_again_once_although_other_jobs_come_and_end_at_once(
    priority: int, state: str, comes: bool, outbox: Outbox
) -> None:
    """While the workers are idle: a queue with a few short jobs a minute."""
    beats()
    recorded("lost", options={"priority": priority})
    outbox.take()
    sent_before(sender.PATIENCE_SECONDS + 1, "lost")
    recorded("later")
    (run,) = map(begun, outbox.take())
    assert run
    status = Status.SUCCESS if state == "ended" else Status.SCHEDULED
    take([Outcome(run.run, status, delay=3_600)])
    has_begun_last("later")
    assert rows()["later"] == (state, 1)
    for expected in (comes, False):
        send_all()
        assert bool(outbox.take()) == expected
        sent_before(sender.PATIENCE_SECONDS - 1, "lost")


def test_a_job_that_was_sent_once_more_since_it_began_has_overtaken_none(outbox: Outbox) -> None:
    beats()
    recorded("waits")
    outbox.take()
    recorded("later")
    (message,) = outbox.take()
    run = begun(message)
    assert run
    take([Outcome(run.run, Status.PENDING)])
    send_all()
    assert outbox.taken() == [("later", 1)]
    has_begun_last("later")
    sent_before(sender.PATIENCE_SECONDS + 1, "waits")
    send_all()
    assert outbox.taken() == []


def test_jobs_of_a_task_with_a_rate_limit_are_sent_again_when_nothing_has_begun_for_ten_minutes(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy would take its place in the limit, so that the copies of a backlog would leave none to its jobs."""
    beats()
    recorded("j")
    outbox.take()
    nothing_has_begun_for(sender.LONG_SECONDS + 1)
    monkeypatch.setitem(current_app.tasks, job("j").name, SimpleNamespace(rate_limit="1/m"))
    for seconds, comes in ((60, False), (sender.LONG_SECONDS + 1, True)):
        sent_before(seconds, "j")
        send_all()
        assert bool(outbox.take()) == comes, seconds
    has_begun_last("j")
    for seconds, comes in ((4 * sender.LONG_SECONDS, False), (49 * 3_600, True)):
        sent_before(seconds, "j")
        send_all()
        assert bool(outbox.take()) == comes, seconds


def test_a_worker_sends_the_jobs_of_its_own_queues(outbox: Outbox) -> None:
    """Another Celery app of the project may have the others."""
    recorded("j", options={"countdown": 3_600})
    Job.objects.update(not_before=timezone.now())
    sender.send_due(["another"])
    sender.send_all(["another"])
    assert outbox.taken() == []
    sender.send_due([QUEUE])
    assert outbox.taken() == [("j", 0)]


def test_a_worker_reads_no_jobs_of_other_queues(outbox: Outbox) -> None:
    """A million of them may be due while their workers are down."""
    start("SCAN", [[NewJob("a.job", options={"queue": f"down {n % 10}", "countdown": 3_600})] for n in range(100)])
    recorded("j", options={"countdown": 3_600})
    Job.objects.update(not_before=timezone.now() - timedelta(hours=1))
    Job.objects.filter(queue=QUEUE).update(not_before=timezone.now())
    of_indexes = "FROM pg_index WHERE indrelid = 'execution_job'::regclass"
    fetched = f"SELECT sum(pg_stat_get_xact_tuples_fetched(indexrelid))::int {of_indexes}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(fetched)
        (before,) = cursor.fetchone()
        sender.send_due([QUEUE])
        sender.send_all([QUEUE])
        cursor.execute(fetched)
        assert cursor.fetchone()[0] - before < 50
    assert outbox.taken() == [("j", 0)]


def test_the_queues_with_jobs_are_found_in_the_indexes_of_what_waits_and_of_what_is_sent(outbox: Outbox) -> None:
    for queue in ("next", "sent", "later"):
        start("SCAN", [in_a_row(NewJob("a.job", options={"queue": queue}))])
    jobs = Job.objects.filter(queue__in=["next", "later"])
    jobs.update(state="waiting", sent_at=None)
    Job.objects.filter(queue="later").update(not_before=timezone.now() + timedelta(hours=1))
    with CaptureQueriesContext(connection) as asked:
        assert sender.queues_with_jobs() == ["next", "sent"]
    plans = [plan(one["sql"]) for one in asked.captured_queries]
    assert [("job_next" in one, "job_sent" in one, "Sort" in one) for one in plans] == [
        *[(True, False, False)] * 2,
        *[(False, True, False)] * 2,
    ]


def test_a_job_that_waits_behind_long_ones_is_sent_again_less_and_less_often(outbox: Outbox) -> None:
    beats(slots=1)
    recorded("long", "waits")
    assert begun(outbox.take()[0])
    for seconds, comes in ((601, True), (601, False), (601, True), (1_201, False)):
        sent_before(seconds, "long", "waits")
        send_all()
        assert bool(outbox.take()) == comes, seconds


def test_a_pass_goes_on_while_another_thread_registers_a_task(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    registers = Mock()
    monkeypatch.setitem(current_app.tasks, "early", registers)
    type(registers).rate_limit = PropertyMock(
        side_effect=lambda: monkeypatch.setitem(current_app.tasks, "late", Mock(rate_limit=None))
    )
    send_all()


def test_a_worker_that_sends_to_a_queue_of_others_does_not_count_it_as_its_own(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `-Q`, Celery 5.6 counts all queues that its app knows."""
    recorded("j", options={"queue": "of others"})
    picked = [astuple(replace(one, options=json.dumps(one.options))) for one in outbox.take()]
    current_app.amqp.queues.pop("of others", None)  # the start of its job has added it
    producer = Mock()
    monkeypatch.setattr(sender, "batch_producer", lambda: nullcontext(producer))
    publish(picked)
    assert producer.publish.call_args.kwargs["routing_key"] == "of others"
    assert "of others" not in current_app.amqp.queues


def test_jobs_with_a_lower_number_as_their_priority_are_sent_first(outbox: Outbox) -> None:
    recorded("a", "b", "c", "d", options={"priority": 5})
    outbox.take()
    recorded("late", "later", options={"priority": 9})
    recorded("urgent")
    outbox.messages.clear()
    Job.objects.exclude(task__job_id__in="abcd").update(state="waiting")
    Job.objects.filter(task__job_id__in="abcd").delete()
    send_all()
    assert [one.job for one in outbox.messages] == ["urgent", "late", "later"]
    assert outbox.messages[1].options == {"priority": 9}


def test_an_urgent_job_does_not_wait_for_the_backlog_that_is_sent(outbox: Outbox) -> None:
    recorded(*ten(), options={"priority": 5})
    outbox.take()
    recorded("urgent")
    assert outbox.taken() == [("urgent", 0)]


def test_the_next_job_of_a_chain_is_sent_at_once_also_if_it_has_another_queue(outbox: Outbox) -> None:
    beats()
    steps = [
        NewJob("a.job", job_id="a"),
        NewJob("b.job", job_id="b", options={"queue": "slow"}),
    ]
    start("SCAN", [in_a_row(*steps)])
    (first,) = outbox.take()
    run = begun(first)
    assert run
    end = Outcome(run.run, Status.SUCCESS, result='"r"', is_needed=run.is_needed)
    take([end])
    sender.send_behind([run.queue], [end])
    assert outbox.taken() == [("b", 0)]


def test_a_process_that_comes_second_sends_nothing_beyond_the_room(outbox: Outbox) -> None:
    """Another process picks for the queue at this moment. Its picks are not seen yet."""
    outbox.is_down = True
    recorded(*ten())
    outbox.is_down = False
    Job.objects.update(state="waiting")
    with psycopg.connect(servers.postgres.url_for(connection.settings_dict["NAME"])) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('harbor_refresh pick'), hashtext(%s))", [QUEUE])
        sender.send([QUEUE])
        assert outbox.taken() == []
    sender.send([QUEUE])
    assert len(outbox.taken()) == 4


def test_a_job_that_comes_while_another_process_picks_is_sent_a_moment_later(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pick of the other does not see it, and no end may follow."""
    recorded("a", "b")
    outbox.take()
    Job.objects.filter(task__job_id="b").update(state="waiting", sent_at=None)
    with psycopg.connect(servers.postgres.url_for(connection.settings_dict["NAME"])) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('harbor_refresh pick'), hashtext(%s))", [QUEUE])
        monkeypatch.setattr(sender, "time", SimpleNamespace(sleep=lambda _: other.commit()))
        sender.send_behind([QUEUE])
    assert outbox.taken() == [("b", 0)]
