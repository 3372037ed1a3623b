"""A hypothesis state machine drives jobs against what must hold of their rows, on a real PostgreSQL.

Two workers, a sender, a pause, a stop, a retry, a program that reports by itself, and a clock that goes on: in any
order. Messages are kept, and come late, twice, or to a dead worker, and so do outcomes of runs that are over. Each
step is one transaction, as it is in the program, so the order of the steps is every interleaving of them.

After every step, from a ledger that knows of begins and ends alone: no job has two runs that stand; none begins
more often than it may, nor after it has succeeded; a job has ended if, and only if, its task is final; a key is
held by one job; none is sent while its queue is paused; a limit has no more places than it may; and each job that
has not ended is somewhere: waiting, sent, or run by a node that is known or will be missed.
"""

from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from django.db import connection
from django.db.models import Count, F, Q
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from harbor_refresh.executions.errors import AlreadyUnderWay
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.stops import stop_many
from harbor_refresh.executions.models import Execution, Task
from harbor_refresh.executions.news.audit import Origin, Person
from harbor_refresh.executions.status import Status, is_final
from harbor_refresh.tasks.jobs import live_workers, sender, terms
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.live_workers import release_runs_without_worker
from harbor_refresh.tasks.jobs.outcomes import Outcome, take
from harbor_refresh.tasks.jobs.running.handle import Begun, begin
from harbor_refresh.tasks.jobs.sql import run
from harbor_refresh.tasks.jobs.starting.declarations import NewJob, NewNeed
from harbor_refresh.tasks.jobs.starting.job_rows import add
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.models import Job, Limit, Need, Pause
from harbor_refresh.tasks.models.job import JobInput, JobState
from harbor_refresh.tasks.operations.pauses import pause, resume
from tests.integration.jobs.sample_jobs import Sent, send_all
from tests.started import start

WORKERS = (1, 2)
ATTEMPTS = 3
LIMIT = 1
QUEUE = "harbor_refresh.jobs"
OPERATOR = Person("an operator", Origin.TERMINAL)
ENDS = (Status.SUCCESS, Status.ERROR, Status.STOPPED)

workers = st.sampled_from(WORKERS)


@st.composite
def graphs(draw: st.DrawFn) -> list[NewJob]:
    """Up to five jobs, each of which needs some of those before it."""
    part: list[NewJob] = []
    for place in range(draw(st.integers(1, 5))):
        needed = draw(st.sets(st.integers(0, place - 1), max_size=3)) if place else set()
        needs = [NewNeed(one, even_if_failed=draw(st.booleans())) for one in sorted(needed)]
        takes = draw(st.sampled_from((JobInput.NOTHING, JobInput.LIST))) if needs else JobInput.NOTHING
        part.append(NewJob("a.job", needs=needs, takes=takes, max_attempts=ATTEMPTS))
    return part


class Jobs(RuleBasedStateMachine):
    """`outbox`: all messages that were ever sent. `runs`: all runs that have ever begun, with their worker."""

    outbox: ClassVar[list[Sent]] = []

    def __init__(self) -> None:
        super().__init__()
        self.outbox.clear()
        self.runs: list[tuple[Begun, int]] = []
        self.begun: Counter[int] = Counter()
        self.succeeded: set[int] = set()
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE execution, execution_node, execution_pause, execution_limit CASCADE")

    @initialize(graph=graphs(), single=st.integers(1, 3), unique=st.booleans(), limited=st.integers(0, 3))
    def begin_with(self, graph: list[NewJob], single: int, unique: bool, limited: int) -> None:
        Limit.objects.create(name="a.job", concurrency=LIMIT)
        parts = [graph, *([NewJob("a.job", max_attempts=ATTEMPTS)] for _ in range(single))]
        parts += [[NewJob("a.job", max_attempts=ATTEMPTS, limit_key="a key")] for _ in range(limited)]
        if unique:
            parts.append([NewJob("a.job", ["once"], is_unique=True, max_attempts=ATTEMPTS)])
        self.execution = start("SCAN", parts).pk
        for worker in WORKERS:
            self.beat(worker)

    # the workers

    @rule(worker=workers)
    def beat(self, worker: int) -> None:
        run("beat", id=worker, node=f"worker {worker}", slots=1, busy=0, queues=[QUEUE], rate=None, ttl=5)

    @rule(worker=workers)
    def die(self, worker: int) -> None:
        """It is silent for twice the ttl, while the other one looks."""
        with connection.cursor() as cursor:
            silent = "UPDATE execution_node SET heard_at = now() - interval '1 hour' WHERE id = %s"
            cursor.execute(silent, [worker])
        live_workers.delete_dead_workers()
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE execution_node SET suspected_at = now() - interval '1 minute' WHERE id = %s", [worker]
            )
        live_workers.delete_dead_workers()

    @rule()
    def release(self) -> None:
        release_runs_without_worker()

    @precondition(lambda self: self.outbox)
    @rule(data=st.data(), worker=workers)
    def deliver(self, data: st.DataObject, worker: int) -> None:
        """Any message that was ever sent comes, perhaps once more."""
        message = data.draw(st.sampled_from(self.outbox))
        before = Job.objects.filter(pk=message.task_id).first()
        begun = begin(message.task_id, message.job, message.number, worker, 100 + worker)
        if begun is None:
            return
        assert before is not None
        assert before.state == JobState.SENT, "only a job that is sent begins"
        assert before.run == message.number, "a message begins the run that it was sent for"
        assert message.task_id not in self.succeeded, "none begins after its success"
        self.begun[message.task_id] += 1
        self.runs.append((begun, worker))

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), status=st.sampled_from(ENDS))
    def end(self, data: st.DataObject, status: Status) -> None:
        """Any run that ever began says that it has ended, perhaps once more, perhaps from a dead worker."""
        begun, _ = data.draw(st.sampled_from(self.runs))
        result = '"r"' if status == Status.SUCCESS and begun.is_needed else None
        stood = self._stands(begun)
        taken = take([Outcome(begun.run, status, result=result)])
        assert bool(taken) == stood, "an end counts if its run stands, and then alone"
        if taken and status == Status.SUCCESS:
            self.succeeded.add(begun.run.task_id)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), later=st.booleans())
    def try_again(self, data: st.DataObject, later: bool) -> None:
        begun, _ = data.draw(st.sampled_from(self.runs))
        if begun.run.number >= begun.may_begin:
            return  # tracked.py ends it instead
        stood = self._stands(begun)
        delay = 3_600 if later else None
        assert (
            bool(take([Outcome(begun.run, Status.SCHEDULED, delay=delay, arguments=(["again"], {}), retries=1)]))
            == stood
        )

    # the sender

    @rule()
    def send(self) -> None:
        send_all()

    @rule()
    def an_hour_passes(self) -> None:
        with connection.cursor() as cursor:
            for column in ("sent_at", "not_before"):
                cursor.execute(f"UPDATE execution_job SET {column} = {column} - interval '1 hour'")
            cursor.execute("UPDATE execution_node SET started_at = started_at - interval '1 hour'")
            cursor.execute("UPDATE execution_limit SET swept_at = swept_at - interval '1 hour'")

    @rule(is_paused=st.booleans())
    def pause(self, is_paused: bool) -> None:
        (pause if is_paused else resume)(QUEUE, OPERATOR)

    # people, and other programs

    @rule()
    def stop(self) -> None:
        stop_jobs(self.execution)
        assert not Task.objects.filter(execution=self.execution, status_code__lt=3).exists()

    @rule()
    def stop_all_but_clean_ups(self) -> None:
        stop_many([self.execution], terms.FAILED, terms.clean_ups)
        going = Need.objects.filter(job__task__status_code__lt=3)
        assert not going.filter(even_if_failed=False, is_met=False, needed__task__status="Stopped").exists()

    @rule()
    def retry(self) -> None:
        retry_failed(self.execution)

    @rule()
    def resume(self) -> None:
        resume_stopped(self.execution)

    @rule()
    def stop_and_resume(self) -> None:
        self.stop()
        self.resume()

    @rule()
    def add_unique(self) -> None:
        if is_final(Execution.objects.get(pk=self.execution).status):
            return
        with suppress(AlreadyUnderWay):
            add(self.execution, [[NewJob("a.job", ["once"], is_unique=True, max_attempts=ATTEMPTS)]])

    @rule(data=st.data(), status=st.sampled_from((Status.SUCCESS, Status.ERROR)))
    def another_program_reports(self, data: st.DataObject, status: Status) -> None:
        task = data.draw(st.sampled_from(list(Task.objects.order_by("pk"))))
        if not is_final(task.status):
            report([Report(task.pk, status, task.status_revision)])

    def _stands(self, begun: Begun) -> bool:
        rows = Job.objects.filter(pk=begun.run.task_id, run=begun.run.number, state=JobState.RUNNING)
        return rows.exists()

    # what must hold

    @invariant()
    def a_job_has_ended_if_its_task_is_final(self) -> None:
        for job in Job.objects.select_related("task"):
            assert (job.state == JobState.ENDED) == is_final(job.task.status), job

    @invariant()
    def no_job_is_sent_while_its_queue_is_paused(self) -> None:
        assert not (Pause.objects.exists() and Job.objects.filter(state=JobState.SENT).exists())

    @invariant()
    def one_run_of_a_job_stands(self) -> None:
        standing = Counter(begun.run.task_id for begun, _ in self.runs if self._stands(begun))
        assert all(count == 1 for count in standing.values()), standing

    @invariant()
    def none_begins_more_often_than_it_may(self) -> None:
        for job in Job.objects.all():
            assert job.run == self.begun[job.pk]
            assert job.run <= job.may_begin

    @invariant()
    def a_key_is_held_by_one_job(self) -> None:
        held = (
            Job.objects.filter(holds_key=True).exclude(state=JobState.ENDED).values_list("unique_key", flat=True)
        )
        assert len(held) == len(set(held))

    @invariant()
    def a_job_waits_for_what_it_needs(self) -> None:
        for need in Need.objects.filter(job__state__in=(JobState.SENT, JobState.RUNNING)).select_related(
            "needed__task"
        ):
            status = need.needed.task.status
            had_succeeded = need.needed_id in self.succeeded or status == Status.SUCCESS
            assert had_succeeded or (need.even_if_failed and need.is_met)

    @invariant()
    def no_more_run_than_the_limit_lets(self) -> None:
        its = Job.objects.filter(limit_key="a key")
        assert its.filter(admitted=True).exclude(state=JobState.ENDED).count() <= LIMIT
        assert not its.filter(admitted=False, state__in=(JobState.SENT, JobState.RUNNING)).exists()

    @invariant()
    def it_knows_for_how_many_it_waits(self) -> None:
        unmet = Count("needs", filter=Q(needs__is_met=False))
        assert not Job.objects.alias(unmet=unmet).exclude(waits_for=F("unmet")).exists()

    @invariant()
    def a_job_that_waits_for_some_waits_for_all_that_have_not_ended(self) -> None:
        met = Need.objects.filter(is_met=True, job__state=JobState.WAITING, job__waits_for__gt=0)
        assert not met.exclude(needed__state=JobState.ENDED).exists()

    @invariant()
    def a_job_waits_for_none_that_has_ended(self) -> None:
        assert not Need.objects.filter(
            is_met=False, job__state=JobState.WAITING, needed__state=JobState.ENDED
        ).exists()

    def teardown(self) -> None:
        """Whatever has happened, all of it ends: live workers run what is left."""
        if not hasattr(self, "execution"):
            return
        Pause.objects.all().delete()
        for _ in range(50):
            for worker in WORKERS:
                self.beat(worker)
            with connection.cursor() as cursor:  # runs whose worker lives, and has forgotten them
                cursor.execute("UPDATE execution_job SET node = 99 WHERE state = 'running'")
            release_runs_without_worker()
            self.an_hour_passes()
            self.outbox.clear()
            send_all()
            for message in list(self.outbox):
                if begun := begin(message.task_id, message.job, message.number, 1, 101):
                    take([Outcome(begun.run, Status.SUCCESS, result='"r"' if begun.is_needed else None)])
            if not Job.objects.exclude(state=JobState.ENDED).exists():
                break
        else:
            raise AssertionError(list(Job.objects.exclude(state=JobState.ENDED).values()))


@pytest.fixture(autouse=True)
def kept_messages(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(rows: Any) -> int:
        Jobs.outbox.extend(Sent.of(row) for row in rows)
        return len(rows)

    monkeypatch.setattr(sender, "_publish", keep)
    monkeypatch.setattr(sender.publisher, "get", lambda: SimpleNamespace(put=keep))
    monkeypatch.setattr(sender, "FLOOR", 1)
    monkeypatch.setattr(sender, "EACH", 1)


STEPS = settings(stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


def test_jobs_keep_their_rules_whatever_happens_to_them() -> None:
    run_state_machine_as_test(Jobs, settings=settings(STEPS, max_examples=25))


@pytest.mark.slow
def test_jobs_keep_their_rules_in_many_more_histories() -> None:
    run_state_machine_as_test(Jobs, settings=settings(STEPS, max_examples=200))
