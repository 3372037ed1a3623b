"""Chains whose reports go over the hook: another process applies them, before it answers, later, or never."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Task
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.jobs.delivery import hook as over_http
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.hook_target import Request, Target
from tests.integration.jobs.sample_jobs import (
    Outbox,
    aged,
    alive,
    chained,
    database_port,
    known,
    record,
    stands,
    write,
)
from tests.integration.redis_state import Clock, Redis
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("database", "nodes")

BROKEN = "a job before it in its chain did not succeed"


@dataclass(frozen=True)
class Chain:
    """Of three jobs, recorded a minute ago. The first one runs; `first` is the key of its task."""

    first: int
    redis: Redis
    outbox: Outbox
    clock: Clock

    def ended(self, status: str = "Success", revision: int = 0, result: Any = 7) -> JobReport:
        """The end of the first job, as its worker has recorded it in Redis."""
        message = f"result: {json.dumps(result)}" if status == "Success" else ""
        write(self.redis, record("a", status, revision, node="live", message=message))
        return JobReport("a", self.first, revision, status, result=result if message else None)

    def published(self) -> list[tuple[str, list[Any]]]:
        """What was published since the last look, with its arguments."""
        messages, self.outbox.messages = self.outbox.messages, []
        return [(one.job, list(one.args)) for one in messages]

    def recovered(self) -> Recovered:
        """A pass of recovery, when what is late is late."""
        self.clock.move(11)
        alive(self.redis, "live", self.clock)
        return recover_jobs(self.outbox.publish)

    def statuses(self) -> dict[str, tuple[str, str]]:
        return {job: (status, message) for job, (status, _, _, message) in known(self.redis)["tasks"].items()}


@pytest.fixture
def chain(redis: Redis, outbox: Outbox, clock: Clock) -> Chain:
    execution = chained("a", "b", "c")
    aged(execution)
    outbox.taken()
    write(redis, record("a", node="live", acknowledged=(0, "Running")))
    return Chain(execution.tasks.get(job_id="a").pk, redis, outbox, clock)


def applied(request: Request) -> None:
    """What Harbor's core does with a request."""
    told = request.body["metadata"]
    report([Report(int(request.path.rpartition("/")[2]), told["status"], told["revision"])])


def test_what_recovery_publishes_before_the_hook_has_answered_has_its_argument(chain: Chain, core: Target) -> None:
    """The other side has applied the report, and takes its time to say so."""

    def apply_and_recover(request: Request) -> None:
        applied(request)
        recover_jobs(chain.outbox.publish)

    core.meanwhile = apply_and_recover
    assert deliver_and_publish([chain.ended()]).count == 1
    assert chain.published() == [("b", [7, "b"])]


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_a_report_that_is_applied_before_it_is_answered_moves_the_chain_at_once(
    status: str, chain: Chain, core: Target
) -> None:
    core.meanwhile = applied
    assert deliver_and_publish([chain.ended(status)]).count == 1
    if status == "Success":
        assert chain.published() == [("b", [7, "b"])]
    else:
        assert chain.published() == []
        assert [chain.statuses()[job] for job in "bc"] == [("Stopped", BROKEN)] * 2


@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_an_end_that_the_target_refuses_for_good_moves_the_chain_at_once(
    status: str, chain: Chain, core: Target
) -> None:
    core.answers[str(chain.first)] = 400
    assert deliver_and_publish([chain.ended(status)]).count == 1
    assert chain.statuses()["a"] == (status, "")
    if status == "Success":
        assert chain.published() == [("b", [7, "b"])]
    else:
        assert chain.published() == []
        assert [chain.statuses()[job] for job in "bc"] == [("Stopped", BROKEN)] * 2


@pytest.mark.parametrize("is_applied", ["before the answer", "after the answer"])
@pytest.mark.parametrize("answer", [200, 202, 404, 503, 302, "none"])
@pytest.mark.parametrize("status", ["Success", "Error", "Stopped"])
def test_whatever_the_hook_answers_a_chain_goes_by_what_was_applied(  # noqa: PLR0917
    status: str, answer: int | str, is_applied: str, chain: Chain, core: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer == "none":
        over_http.hook().close()
        monkeypatch.setattr(pacing, "REPORT_TIMEOUT_SECONDS", 0.3)
        over_http.hook.cache_clear()
        core.hangs = str(chain.first)
    else:
        core.answers[str(chain.first)] = int(answer)
    if is_applied == "before the answer":
        core.meanwhile = applied
    deliver_and_publish([chain.ended(status)])
    if is_applied == "before the answer":
        wait_for(lambda: Task.objects.get(pk=chain.first).status == status, "what a target without an answer does")
    else:
        assert chain.published() == []
        assert [chain.statuses()[job] for job in "bc"] == [("Pending", "")] * 2
        chain.recovered()
        assert chain.published() == []
        report([Report(chain.first, status, 0)])
    chain.recovered()
    chain.recovered()
    if status == "Success":
        assert chain.published() == [("b", [7, "b"])]
        assert chain.statuses() == {"a": ("Success", ""), "b": ("Pending", ""), "c": ("Pending", "")}
    else:
        assert chain.published() == []
        assert chain.statuses() == {"a": (status, ""), "b": ("Stopped", BROKEN), "c": ("Stopped", BROKEN)}


def test_a_process_that_dies_between_handing_on_and_reporting_is_made_up_for(
    chain: Chain, core: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> None:
        raise SystemExit

    end = chain.ended()
    with monkeypatch.context() as patched:
        patched.setattr(over_http.Hook, "post", die)
        with pytest.raises(SystemExit):
            deliver_and_publish([end])
    assert (core.requests, chain.published()) == ([], [])
    core.meanwhile = applied
    assert chain.recovered() == Recovered(landed=1)
    assert chain.published() == [("b", [7, "b"])]


def test_a_success_that_has_handed_on_nothing_waits_for_recovery_to_report_it_again(
    chain: Chain, core: Target
) -> None:
    """Redis has the result, the database the status, whoever has put it there."""
    chain.ended()
    stands("a", "Success")
    assert recover_jobs(chain.outbox.publish) == Recovered()
    assert (chain.published(), chain.statuses()["b"]) == ([], ("Pending", ""))
    assert chain.recovered() == Recovered(landed=1)
    assert chain.published() == [("b", [7, "b"])]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_chain_goes_on_with_the_result_of_the_run_that_stands(
    order: tuple[int, int], chain: Chain, core: Target
) -> None:
    """The first run was taken for dead, and hands on late."""
    core.answers[str(chain.first)] = 202
    for revision in order:
        deliver_and_publish([chain.ended("Success", revision, result=f"of run {revision}")])
    stands("a", "Success", 1, 1)
    chain.recovered()
    assert chain.published() == [("b", ["of run 1", "b"])]


def test_what_an_earlier_run_handed_on_is_not_the_result_of_the_run_that_stands(
    chain: Chain, core: Target
) -> None:
    deliver_and_publish([chain.ended("Success", 0, result="of run 0")])
    chain.ended("Success", 1, result="of run 1")
    stands("a", "Success", 1, 1)
    recover_jobs(chain.outbox.publish)
    assert chain.published() == []
    chain.recovered()
    assert chain.published() == [("b", ["of run 1", "b"])]


def test_what_is_handed_on_to_a_job_that_has_a_message_changes_nothing(chain: Chain, core: Target) -> None:
    core.meanwhile = applied
    deliver_and_publish([chain.ended("Success", 0, result="of run 0")])
    before = list(Job.objects.values())
    deliver_and_publish([chain.ended("Success", 1, result="of run 1")])
    assert list(Job.objects.values()) == before
    assert chain.published() == [("b", ["of run 0", "b"])]


def test_a_database_that_is_away_when_results_are_handed_on_is_told_and_nothing_is_reported(
    chain: Chain, core: Target
) -> None:
    end = chain.ended()
    with database_port() as port:
        port.away()
        with pytest.raises(DatabaseAway):
            deliver_and_publish([end])
    assert (core.requests, list(known(chain.redis)["records"])) == ([], ["a"])
    assert deliver_and_publish([end]).count == 1


def test_a_result_that_the_database_refuses_is_not_reported_and_the_others_are(chain: Chain, core: Target) -> None:
    chained("other a", "other b")
    chain.published()
    core.meanwhile = applied
    bad = chain.ended(result="\x00")
    other = Task.objects.get(job_id="other a")
    good = JobReport("other a", other.pk, other.status_revision, "Success", result=8)
    delivered = deliver_and_publish([bad, good])
    assert (delivered.count, delivered.refused) == (1, [bad])
    assert core.asked() == [good.task_id]
    assert chain.published() == [("other b", [8, "other b"])]


def test_the_end_of_a_chain_marks_its_execution(chain: Chain, redis: Redis) -> None:
    stands("a", "Error")
    redis.delete("cache:execution:refresh:queue:v2")
    chain.recovered()
    execution = Task.objects.get(pk=chain.first).execution_id
    assert redis.smembers("cache:execution:refresh:queue:v2") == {f"{execution}:SCAN".encode()}
