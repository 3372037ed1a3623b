"""What tests of jobs may ask for: time that stands still, and an outbox in the place of the broker."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import tracked
from harbor_refresh.tasks.jobs.delivery import hook as over_http
from harbor_refresh.tasks.jobs.delivery import recorder, reporter
from harbor_refresh.tasks.jobs.lifecycle import publication
from harbor_refresh.tasks.jobs.lifecycle.job_report import JobReport
from harbor_refresh.tasks.jobs.records.records import job_records
from harbor_refresh.tasks.models import RedisMemory
from harbor_refresh.tasks.queue import execution_queue
from tests.integration.jobs.hook_target import Target, target
from tests.integration.jobs.sample_jobs import DAY, NOW, SECOND, Outbox
from tests.integration.redis_state import MEMORY, PREFIX, Clock, Redis, with_clock_of_test


@pytest.fixture
def clock(database: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Of all that the use cases ask Redis about jobs. A node may be silent for 10 s. Redis remembers since
    yesterday, that has been looked up, and signs of life have come ever since."""
    conf = refresh_settings()
    for verbs in (job_records(), execution_queue()):
        made: Any = type(verbs)(conf, redis, redis, with_clock_of_test)
        for name in ("conf", "_redis", "_patient", "_single", "_ttl_us"):
            monkeypatch.setattr(verbs, name, getattr(made, name))
    yesterday = NOW - DAY * SECOND
    redis.hset(f"{PREFIX}jobs", MEMORY, f"{yesterday}|7")
    RedisMemory.objects.update_or_create(
        pk=1, defaults={"epoch": yesterday, "sequence": 7, "looked_up": yesterday}
    )
    return Clock(redis, NOW, heard=True)


@pytest.fixture
def nodes(redis: Redis, clock: Clock) -> None:
    """One that is alive, one whose last sign of life is as old as it may be, and one that is dead."""
    limit = NOW - 10 * SECOND
    redis.zadd(f"{PREFIX}nodes", {"live": NOW, "old": limit, "dead": limit - 1})


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch) -> Outbox:
    box = Outbox()
    monkeypatch.setattr(publication, "publish_after_commit", box.publish_after_commit)
    return box


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[JobReport]:
    """What runs in this process would report."""
    made: list[JobReport] = []
    monkeypatch.setattr(reporter, "put", made.append)
    monkeypatch.setattr(recorder, "put", lambda end: end())
    monkeypatch.setattr(tracked, "PAUSE_SECONDS", 0)
    return made


@pytest.fixture
def core(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """Reports of jobs go there."""
    with target() as told:
        settings.REFRESH_REPORT_URL = told.url
        settings.REFRESH_REPORT_AUTHORIZATION = "Harbor-Secret abc"
        monkeypatch.setattr(pacing, "REPORT_TIMEOUT_SECONDS", 60)
        monkeypatch.setattr(over_http, "SECONDS", 600.0)  # a slow machine is no slow target
        over_http.hook.cache_clear()
        yield told
        over_http.hook().close()
        over_http.hook.cache_clear()
