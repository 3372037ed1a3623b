"""Recovery of jobs goes on past whatever cannot be settled, and what it leaves the next pass does."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.lifecycle import task_state
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.task_state import TaskState
from harbor_refresh.tasks.jobs.repair import job_recovery
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.jobs.repair.reaper import Reaped, reap
from harbor_refresh.tasks.jobs.runtime.broker import publish
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.sample_jobs import (
    TOO_LONG,
    WAITS,
    Outbox,
    aged,
    alive,
    database_port,
    known,
    record,
    recorded,
    stands,
    state,
    tasks_refuse,
    tasks_refuse_no_more,
    unpublished,
    write,
)
from tests.integration.redis_state import PREFIX, Clock, Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")


def test_a_task_that_refuses_every_report_keeps_no_other_from_anything(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    """There is one of each kind, it is on a page with others, and there are other pages."""
    kinds: dict[str, tuple[int, dict[str, Any]]] = {
        "runs": (700, {"node": "dead"}),
        "late": (600, {"node": "live", "ago": TOO_LONG}),
        "waits": (500, WAITS | {"acknowledged": None, "sent": False}),
    }
    jobs = {kind: [f"{kind} {number}" for number in range(count)] for kind, (count, _) in kinds.items()}
    recorded(*chain(*jobs.values()))
    outbox.taken()
    pks = dict(Task.objects.values_list("job_id", "pk"))
    for kind, (_, parts) in kinds.items():
        write(redis, *(record(job, **parts, task_id=pks[job]) for job in jobs[kind]))
    cursed = [some[0] for some in jobs.values()]
    tasks_refuse(f"OLD.id IN ({', '.join(str(pks[job]) for job in cursed)})")

    passes = [recover_jobs(outbox.publish) for _ in range(2)]
    assert passes[0] == Recovered(given_back=700, landed=1797, sent=701, troubled=3)
    assert passes[1].sent == 499
    assert Counter(job for job, _, _ in outbox.taken()) == Counter([*jobs["runs"], *jobs["waits"]])
    statuses = Counter(Task.objects.exclude(job_id__in=cursed).values_list("status", "status_revision"))
    assert statuses == {("Pending", 1): 699, ("Running", 0): 599, ("Scheduled", 1): 499}

    tasks_refuse_no_more()
    clock.move(TOO_LONG)
    alive(redis, "live", clock)
    assert recover_jobs(outbox.publish) == Recovered(landed=3)
    told = known(redis)["tasks"]
    assert [told[job][:2] for job in cursed] == [("Pending", 1), ("Running", 0), ("Scheduled", 1)]
    assert outbox.taken() == []


def test_a_page_that_the_database_refuses_is_left_to_the_next_pass_and_the_others_are_not(
    redis: Redis, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [f"j{number}" for number in range(1200)]
    recorded(*jobs)
    outbox.taken()
    pks = dict(Task.objects.values_list("job_id", "pk"))
    write(redis, *(record(job, node="dead", task_id=pks[job]) for job in jobs))
    with monkeypatch.context() as patched:
        fails = chain([True], repeat(False))
        patched.setattr(job_recovery, "task_states", lambda task_ids: ask(task_ids, fails=next(fails)))
        first = recover_jobs(outbox.publish)
    assert (first.troubled, first.given_back) == (1, first.sent)
    assert 0 < first.sent < 1200
    assert recover_jobs(outbox.publish).given_back == 1200 - first.sent
    assert outbox.taken() == sorted((job, 1, 1) for job in jobs)


def ask(task_ids: Sequence[int], *, fails: bool) -> dict[int, TaskState]:
    if fails:
        raise DatabaseError("no more")
    return task_state.task_states(task_ids)


def test_a_task_that_refuses_to_be_scheduled_keeps_no_other_from_being_sent(outbox: Outbox) -> None:
    """Its message says: later. Nor is that sent again with every pass."""
    unpublished(outbox, "cursed", options={"countdown": 3600})
    unpublished(outbox, "good")
    tasks_refuse(f"OLD.id = {Task.objects.get(job_id='cursed').pk}")
    for _ in range(5):
        with suppress(DatabaseError):
            recover_jobs(outbox.publish)
    sent = Counter(job for job, _, _ in outbox.taken())
    assert sent["good"] == 1
    assert sent["cursed"] <= 1


def test_a_task_that_refuses_to_be_given_back_keeps_no_other_that_redis_has_forgotten_from_it(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    jobs = [f"j{number}" for number in range(9)]
    aged(recorded(*jobs))
    outbox.taken()
    for job in jobs:
        stands(job, "Running")
    tasks_refuse(f"OLD.id = {Task.objects.get(job_id='j4').pk}")
    redis.delete(f"{PREFIX}jobs")
    for _ in range(3):
        recover_jobs(outbox.publish)
        clock.move(TOO_LONG)
    recover_jobs(outbox.publish)
    statuses = Counter(Task.objects.values_list("status", "status_revision"))
    assert statuses == {("Pending", 1): 8, ("Running", 0): 1}


@pytest.mark.parametrize("options", [{"countdown": 1_700_000_000_000}, {"expires": 1e300}, {"queue": 5}])
def test_whatever_is_wrong_with_a_message_is_its_jobs_alone(options: dict[str, Any], outbox: Outbox) -> None:
    unpublished(outbox, "bad", options=options)
    unpublished(outbox, "good")
    recover_jobs(publish)
    statuses = dict(Task.objects.values_list("job_id", "status"))
    assert statuses == {"bad": "Error", "good": "Pending"}
    assert Task.objects.filter(job_id="good", job__published_at__isnull=False).exists()


def test_a_job_whose_message_cannot_be_made_fails_and_starves_no_other(redis: Redis, outbox: Outbox) -> None:
    """One was never published, one waits for another try."""
    for job in ("new", "old"):
        unpublished(outbox, job, options={"priority": "high", "countdown": "soon"})
    unpublished(outbox, "good")
    stands("old", "Scheduled", 1, 1)
    Job.objects.filter(task__job_id="old").update(published_at=timezone.now(), options={"expires": "tomorrow"})
    write(redis, record("old", **WAITS, sent=False))
    recover_jobs(publish)
    found = known(redis)
    for job, revision in (("new", 0), ("old", 1)):
        status, at, _, why = found["tasks"][job]
        assert (status, at, why.partition(": ")[0]) == ("Error", revision, "its message cannot be made")
    assert found["tasks"]["good"] == ("Pending", 0, 0, "")
    assert found["published"] == {"new", "old", "good"}
    assert recover_jobs(publish) == Recovered()
    assert reap() == Reaped()
    assert known(redis) == found | {"records": {}}


def test_a_broker_that_is_away_in_the_middle_of_a_pass_loses_nothing(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    recorded("j")
    outbox.taken()
    write(redis, record(node="dead"))

    def fail(_: Sequence[Message]) -> None:
        raise RuntimeError("no broker")

    for _ in ("given back", "overdue"):
        with pytest.raises(RuntimeError, match="no broker"):
            recover_jobs(fail)
        assert known(redis)["tasks"] == {"j": ("Pending", 1, 1, "")}
        clock.move(TOO_LONG)
    assert recover_jobs(outbox.publish) == Recovered(sent=1)
    assert recover_jobs(outbox.publish) == Recovered()
    assert outbox.taken() == [("j", 1, 1)]


def test_a_database_that_goes_away_between_two_pages_ends_the_pass_and_the_next_one_does_the_rest(
    redis: Redis, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [f"j{number}" for number in range(1200)]
    recorded(*jobs)
    outbox.taken()
    pks = dict(Task.objects.values_list("job_id", "pk"))
    write(redis, *(record(job, node="dead", task_id=pks[job]) for job in jobs))

    with database_port() as port:

        def publish_and_lose_the_database(messages: Sequence[Message]) -> None:
            outbox.publish(messages)
            port.away()

        first = recover_jobs(publish_and_lose_the_database)
        assert recover_jobs(outbox.publish) == Recovered()
    assert 0 < first.given_back == first.landed == first.sent < 1200
    assert caplog.text.count("The database is away") == 2
    rest = 1200 - first.given_back
    assert recover_jobs(outbox.publish) == Recovered(given_back=rest, landed=rest, sent=rest)
    assert outbox.taken() == sorted((job, 1, 1) for job in jobs)
    assert set(known(redis)["tasks"].values()) == {("Pending", 1, 1, "")}


def test_a_database_that_goes_away_after_a_job_was_given_back_learns_of_it_a_moment_later(
    redis: Redis, outbox: Outbox, clock: Clock
) -> None:
    recorded("j")
    outbox.taken()
    write(redis, record(node="dead"))
    tasks_refuse("true", sqlstate="57P01")
    assert recover_jobs(outbox.publish) == Recovered(given_back=1)
    waiting = record(status="Pending", revision=1, sent=False)
    assert known(redis) == state({"j": ("Pending", 0, 0, "")}, [waiting])
    tasks_refuse_no_more()
    clock.move(TOO_LONG)
    assert [recover_jobs(outbox.publish) for _ in range(3)] == [
        Recovered(landed=1),
        Recovered(sent=1),
        Recovered(),
    ]
    waits = record(status="Pending", revision=1, ago=-TOO_LONG, acknowledged=(1, "Pending", 0))
    assert known(redis) == state({"j": ("Pending", 1, 1, "")}, [waits])
    assert outbox.taken() == [("j", 1, 1)]


def test_a_record_whose_name_is_no_text_is_dropped_once_and_starves_no_other(redis: Redis, outbox: Outbox) -> None:
    """Another program has written it. A name may also be one that PostgreSQL cannot store, or with a readable
    record."""
    names = [b"\xff\xfe\x01", b"a\x00b", "\ud800".encode(errors="surrogatepass")]
    recorded("a")
    outbox.taken()
    (good,) = Task.objects.values_list("pk", flat=True)
    write(redis, record("a", node="live", task_id=good))
    whole = redis.hgetall(f"{PREFIX}jobs")
    redis.hset(f"{PREFIX}jobs", mapping=dict.fromkeys(names, b"rubbish") | {b"\xff": whole[b"a"]})
    assert recover_jobs(outbox.publish).unreadable == len(names) + 1
    assert recover_jobs(outbox.publish).unreadable == 0
    assert redis.hgetall(f"{PREFIX}jobs").keys() >= {b"a"}
    assert not {*names, b"\xff"} & redis.hgetall(f"{PREFIX}jobs").keys()
