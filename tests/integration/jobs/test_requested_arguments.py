"""The arguments that a job asks for: they are in its row, and every later run has them, whatever dies."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from celery.exceptions import Reject, Retry

from harbor_refresh.executions.models import Task
from harbor_refresh.executions.status import Status
from harbor_refresh.tasks.jobs import Handle
from harbor_refresh.tasks.jobs.again import resume_stopped, retry_failed
from harbor_refresh.tasks.jobs.nodes import release_runs_without_node, this_node
from harbor_refresh.tasks.jobs.stops import stop_jobs
from harbor_refresh.tasks.jobs.turns import Turn, take
from harbor_refresh.tasks.models.job import Node
from tests.integration.jobs.hook_target import Target
from tests.integration.jobs.sample_jobs import (
    AtOnce,
    Outbox,
    beats,
    begun,
    chained,
    delivered,
    delivered_to,
    failed,
    job,
    recorded,
    rows,
    tasks,
)

pytestmark = pytest.mark.usefixtures("at_once")

Work = Callable[[Handle], Any]


@pytest.fixture(autouse=True)
def worker(database: str, outbox: Outbox) -> None:
    """This process is a worker, and there is another one."""
    beats(this_node.id)
    beats(2)


def asks_for(*args: Any, **options: Any) -> Work:
    return lambda job: job.retry(args=args, countdown=0, **options)


def again(job: Handle) -> None:
    job.retry(countdown=0)


def ends_well(job: Handle) -> None:
    pass


def seen_by(work: Work, outbox: Outbox) -> list[Any]:
    """Run the job of the one message. Return the arguments that it got."""
    seen: list[Any] = []

    def carry_out(job: Handle, *args: Any, **kwargs: Any) -> None:
        seen.extend((*args, *kwargs.items()))
        work(job)

    (message,) = outbox.take()
    with suppress(Retry):
        delivered_to(carry_out, message, max_retries=99)
    return seen


def execution_id() -> int:
    return Task.objects.latest("pk").execution_id


def test_every_later_run_has_them_until_the_job_asks_for_others(outbox: Outbox) -> None:
    recorded("j", args=[1], kwargs={"size": 10}, max_attempts=9)
    works: list[Work] = [
        again,
        asks_for(2),
        again,
        asks_for(3, kwargs={}),
        asks_for(kwargs={"size": 5}),
        ends_well,
    ]
    assert [seen_by(work, outbox) for work in works] == [
        [1, ("size", 10)],
        [1, ("size", 10)],
        [2, ("size", 10)],
        [2, ("size", 10)],
        [3],
        [("size", 5)],
    ]


def test_changes_in_place_count_as_well(outbox: Outbox) -> None:
    recorded("j", args=[[1, 2, 3]])
    left: list[list[int]] = []

    def work(job: Handle, pages: list[int]) -> None:
        left.append([*pages])
        pages.pop(0)
        if pages:
            job.retry(countdown=0)

    for _ in range(3):
        (message,) = outbox.take()
        with suppress(Retry):
            delivered_to(work, message)
    assert left == [[1, 2, 3], [2, 3], [3]]


def test_the_result_of_the_job_before_is_one_of_them(outbox: Outbox) -> None:
    chained("a", "b")
    (first,) = outbox.take()
    delivered(first, lambda job: 7)
    works: list[Work] = [again, asks_for(8, "c"), again, ends_well]
    assert [seen_by(work, outbox) for work in works] == [[7, "b"], [7, "b"], [8, "c"], [8, "c"]]


def test_they_outlive_the_process_that_asked_for_them_and_the_one_that_ran_with_them(outbox: Outbox) -> None:
    recorded("j", args=[1])
    seen_by(asks_for(2), outbox)
    (message,) = outbox.take()
    run = begun(message, node=2)
    assert run is not None
    assert run.args == [2]
    Node.objects.filter(pk=2).delete()
    release_runs_without_node()
    assert seen_by(again, outbox) == [2]


def test_a_run_that_was_released_asks_for_nothing_any_more(outbox: Outbox) -> None:
    recorded("j", args=[1])
    (message,) = outbox.take()
    run = begun(message, node=2)
    assert run
    Node.objects.filter(pk=2).delete()
    release_runs_without_node()
    late = Turn(run.run, Status.SCHEDULED, arguments=([9], {}))
    assert take([late]) == []
    assert seen_by(lambda job: take([late]), outbox) == [1]
    assert (job("j").args, rows()) == ([1], {"j": ("ended", 2)})


def test_a_try_by_hand_has_them(outbox: Outbox) -> None:
    recorded("j", args=[1])
    seen_by(asks_for(2), outbox)
    with pytest.raises(ValueError, match="no page"):
        seen_by(fails, outbox)
    assert retry_failed(execution_id()) == 1
    assert seen_by(again, outbox) == [2]


def fails(job: Handle) -> None:
    raise ValueError("no page")


def test_a_job_that_is_stopped_while_it_waits_is_resumed_with_them(outbox: Outbox) -> None:
    recorded("j", args=[1])
    seen_by(lambda job: job.retry(args=[2], countdown=60), outbox)
    assert tasks()["j"][0] == "Scheduled"
    stop_jobs(execution_id())
    assert resume_stopped(execution_id()) == 1
    assert seen_by(again, outbox) == [2]


def test_a_target_of_the_hook_that_takes_no_report_keeps_none_back(outbox: Outbox, core: Target) -> None:
    recorded("j", args=[1])
    core.answers[str(Task.objects.get().pk)] = 503
    seen_by(asks_for(2), outbox)
    assert seen_by(again, outbox) == [2]


@pytest.mark.parametrize("argument", [object(), {1}, float("nan"), "a\x00b", "x" * 2_000_000])
def test_arguments_that_cannot_be_kept_end_the_job(argument: Any, outbox: Outbox, at_once: AtOnce) -> None:
    recorded("j", args=[1])
    with pytest.raises(Reject, match="another try takes arguments that are JSON"):
        seen_by(asks_for(argument), outbox)
    assert rows() == {"j": ("ended", 1)}
    assert "another try takes arguments that are JSON" in tasks()["j"][3]


def test_a_failure_by_another_program_keeps_them(outbox: Outbox) -> None:
    execution = recorded("j", args=[1])
    seen_by(asks_for(2), outbox)
    failed(execution, "j")
    outbox.take()
    assert retry_failed(execution.pk) == 1
    assert seen_by(again, outbox) == [2]
