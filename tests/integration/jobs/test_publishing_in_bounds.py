"""Publishing many large arguments: a page is bounded by its jobs and by their bytes."""

from collections.abc import Callable, Sequence

import pytest

from harbor_refresh.executions.models import Task
from harbor_refresh.tasks.jobs.delivery.followers import deliver_and_publish
from harbor_refresh.tasks.jobs.lifecycle import publication
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.lifecycle.message import Message
from harbor_refresh.tasks.jobs.lifecycle.publication import publish_recorded
from harbor_refresh.tasks.jobs.repair.job_recovery import recover_jobs
from harbor_refresh.tasks.models import Job
from tests.integration.jobs.sample_jobs import Outbox, aged, known, record, write
from tests.integration.redis_state import Redis

pytestmark = pytest.mark.usefixtures("database", "nodes")

LARGE = "x" * 300


class Calls:
    """What one call after the other was given to publish: the sizes of the arguments."""

    def __init__(self) -> None:
        self.sizes: list[list[int]] = []

    def publish(self, messages: Sequence[Message]) -> Sequence[tuple[Message, str]]:
        self.sizes.append([sum(map(len, one.args)) for one in messages])
        return ()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A page has no more than a thousand bytes; JSON needs six for each job besides."""
    monkeypatch.setattr(publication, "PAGE_BYTES", 1_000)
    return Calls()


def recorded(outbox: Outbox, *arguments: Sequence[str]) -> int:
    outbox.is_away = True
    jobs = [[NewJob("a.job", one, job_id=str(number))] for number, one in enumerate(arguments)]
    execution = start("SCAN", jobs).execution
    outbox.is_away = False
    aged(execution)
    return execution.pk


def test_jobs_of_an_execution_are_published_in_pages_of_so_many_bytes(outbox: Outbox, calls: Calls) -> None:
    pk = recorded(outbox, *[[LARGE]] * 7, [LARGE * 5], ["small"], ["small"])
    assert publish_recorded(calls.publish, execution_id=pk) == 10
    assert calls.sizes == [[300] * 3, [300] * 3, [300], [1500], [5, 5]]


def test_recovery_publishes_what_was_recorded_in_such_pages(redis: Redis, outbox: Outbox, calls: Calls) -> None:
    recorded(outbox, *[[LARGE]] * 7)
    assert recover_jobs(calls.publish).sent == 7
    assert calls.sizes == [[300] * 3, [300] * 3, [300]]
    assert not Job.objects.filter(published_at=None).exists()


def test_recovery_sends_again_in_such_pages_and_notes_each(redis: Redis, outbox: Outbox, calls: Calls) -> None:
    pk = recorded(outbox, *[[LARGE]] * 7)
    publish_recorded(outbox.publish, execution_id=pk)
    pks = dict(Task.objects.values_list("job_id", "pk"))
    write(redis, *(record(job, node="dead", task_id=pks[job]) for job in pks))
    given_up: list[Callable[[], None]] = []

    def publish(messages: Sequence[Message]) -> Sequence[tuple[Message, str]]:
        if len(calls.sizes) == 2 and not given_up:
            given_up.append(lambda: None)
            raise OSError("the broker is away")
        return calls.publish(messages)

    with pytest.raises(OSError, match="broker"):
        recover_jobs(publish)
    assert calls.sizes == [[300] * 3] * 2
    assert sorted(one.sent for one in known(redis)["records"].values()) == [False] + [True] * 6


def test_what_was_handed_on_counts(outbox: Outbox, calls: Calls) -> None:
    outbox.is_away = True
    steps = [
        [NewJob("a.job", job_id=f"a{number}"), NewJob("a.job", job_id=f"b{number}", takes_result=True)]
        for number in range(4)
    ]
    aged(start("SCAN", steps).execution)
    firsts = list(Task.objects.filter(job_id__startswith="a").order_by("pk"))
    deliver_and_publish([JobReport(task.job_id, task.pk, 0, "Success", result=LARGE * 2) for task in firsts])
    assert publish_recorded(calls.publish, after=[task.pk for task in firsts]) == 4
    assert calls.sizes == [[600]] * 4


def test_many_small_jobs_are_five_hundred_a_page(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    pk = recorded(outbox, *[["small"]] * 1_200)
    assert publish_recorded(calls.publish, execution_id=pk) == 1_200
    assert [len(one) for one in calls.sizes] == [500, 500, 200]
