"""An execution of many jobs, from an iterable that is read a page at a time: all of them are recorded, or none."""

from collections.abc import Iterator

import pytest

from harbor_refresh.executions.errors import AlreadyUnderWay, Refused
from harbor_refresh.executions.models import Execution
from harbor_refresh.tasks.jobs.starting import records
from harbor_refresh.tasks.jobs.starting.records import Chain, NewJob, add, start
from harbor_refresh.tasks.models.job import Job
from tests.integration.jobs.sample_jobs import Outbox, job

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BATCH", 10)


def numbered(count: int, read: list[int] | None = None) -> Iterator[Chain]:
    for number in range(count):
        if read is not None:
            read.append(Job.objects.count())
        yield [NewJob("a.job", [number], job_id=f"j{number:02}")]


def test_jobs_are_recorded_in_the_order_given(outbox: Outbox) -> None:
    execution = start("SCAN", numbered(35))
    assert list(execution.tasks.order_by("pk").values_list("job_id", flat=True)) == [f"j{n:02}" for n in range(35)]
    assert [one.args for one in Job.objects.order_by("pk")] == [[number] for number in range(35)]
    assert len(outbox.taken()) == 35


def test_the_iterable_is_read_while_the_pages_before_are_written(outbox: Outbox) -> None:
    read: list[int] = []
    start("SCAN", numbered(45, read))
    assert read[-1] == 40, "all pages before the last one are written"


def test_one_bad_job_at_the_end_leaves_nothing_of_those_before_it(outbox: Outbox) -> None:
    def jobs() -> Iterator[Chain]:
        yield from numbered(35)
        yield [NewJob("a.job", [object()])]

    with pytest.raises(Refused, match="argument 1"):
        start("SCAN", jobs())
    assert not Execution.objects.exists()
    assert not Job.objects.exists()
    assert outbox.taken() == []


def test_a_unique_job_of_an_earlier_page_is_left_out_of_a_later_one(outbox: Outbox) -> None:
    same = [[NewJob("a.job", [number % 12], is_unique=True)] for number in range(24)]
    assert start("SCAN", same).tasks.count() == 12


def test_nothing_is_started_if_all_pages_are_under_way(outbox: Outbox) -> None:
    jobs = [[NewJob("a.job", [number], is_unique=True)] for number in range(24)]
    start("SCAN", jobs)
    with pytest.raises(AlreadyUnderWay):
        start("SCAN", jobs)
    assert Execution.objects.count() == 1


def test_an_addition_is_paged_as_well(outbox: Outbox) -> None:
    execution = start("SCAN", [], open_seconds=60)
    assert add(execution.pk, numbered(35), once="all") == 35
    assert add(execution.pk, numbered(35), once="all") == 0
    assert job("j34").args == [34]
