"""`async def` jobs in real workers: each pool that runs them, their limits, and the end of their processes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from celery import chain

from harbor_refresh.tasks.jobs import start
from harbor_refresh.tasks.models import Job
from tests.faults import jobs as team
from tests.faults.cluster import Member
from tests.variants import variants
from tests.waiting import wait_for


@pytest.mark.parametrize("pool", variants("prefork", "threads", "solo"))
def test_each_pool_runs_them_and_they_hear_a_stop(
    pool: str, worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    """celery#6552."""
    member = worker(pool=pool, concurrency=4)
    jobs = [team.async_copy.s(str(number), 0.1, failures=number % 2) for number in range(20)]
    execution = start("SCAN", jobs=[*jobs, chain(team.async_copy.s("a"), team.joined.s("b"))])
    assert execution.wait(timeout=120) == "Success", member.text()
    assert log.read_text().count("async_copy") == 31
    endless = start("SCAN", jobs=[team.async_endless.s("c")])
    wait_for(Job.objects.filter(check_in__isnull=False).exists, "it to check in", log=member.log)
    assert endless.stop() == 1
    wait_for(lambda: "heard c" in log.read_text(), "it to hear the stop", log=member.log)
    holds()
    assert not member.died()


def test_a_soft_limit_is_raised_in_them_and_a_hard_limit_ends_their_process(
    worker: Callable[..., Member], log: Path, holds: Callable[..., None]
) -> None:
    member = worker()
    limited = [
        team.async_limited.s("soft", hears=True).set(soft_time_limit=1, time_limit=60),
        team.async_limited.s("hard", hears=False).set(soft_time_limit=1, time_limit=3),
    ]
    execution = start("SCAN", jobs=limited)
    assert execution.wait(timeout=120) == "Error"
    assert sorted(one for one in log.read_text().splitlines() if one.startswith("limited")) == [
        "limited hard",
        "limited soft",
    ]
    messages = execution.tasks.order_by("pk").values_list("status_message", flat=True)
    assert list(messages) == [
        "SoftTimeLimitExceeded: SoftTimeLimitExceeded()",
        "TimeLimitExceeded: TimeLimitExceeded(3,)",
    ]
    assert start("SCAN", jobs=[team.async_copy.s("next")]).wait(timeout=60) == "Success"
    holds()
    assert not member.died()
