"""What reaper and recovery do is added up: every pass once, whatever it found and however it ended."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from harbor_refresh.executions.errors import DatabaseAway, QueueUnavailable
from harbor_refresh.tasks import signals
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.overview import pass_counts
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS, Passes, counted
from harbor_refresh.tasks.jobs.records.counts import Count, Counts, counts
from harbor_refresh.tasks.jobs.repair import reaper
from harbor_refresh.tasks.jobs.repair.job_recovery import Recovered, recover_jobs
from harbor_refresh.tasks.jobs.repair.reaper import Reaped, reap
from tests.integration.redis_state import MEMORY, Clock, Redis, absent_redis, whole_redis, with_clock_of_test

pytestmark = pytest.mark.usefixtures("database", "redis")

NOW = 1_000_000_000_000
DOCS = Path(__file__).resolve().parents[3] / "docs/jobs.md"


def publish(messages: Sequence[Any]) -> None:
    """To nobody."""


PASSES: dict[str, Callable[[], object]] = {"reaper": reap, "recovery": lambda: recover_jobs(publish)}


def unreadable(redis: Redis, *jobs: str) -> None:
    redis.hset("cache:execution:refresh:jobs", mapping=dict.fromkeys(jobs, "nonsense"))


def kept(redis: Redis) -> dict[str, str]:
    state: dict[str, str] = whole_redis(redis).get("counts", {})
    return {name: value for name, value in state.items() if name != "since" and not name.endswith(".last")}


def test_passes_are_added_up_with_the_time_of_the_last(redis: Redis) -> None:
    kinds, clock = Counts(refresh_settings(), redis, redis, with_clock_of_test), Clock(redis, NOW)
    kinds.add("reaper", {"lost": 2, "failed": 0})
    clock.move(5)
    kinds.add("reaper", {"lost": 3, "taken": 1})
    kinds.add("recovery", {"sent": 0})
    assert whole_redis(redis) == {
        "counts": {
            "since": str(NOW),
            "reaper.lost": "5",
            "reaper.taken": "1",
            "reaper.passes": "2",
            "reaper.last": str(NOW + 5_000_000),
            "recovery.passes": "1",
            "recovery.last": str(NOW + 5_000_000),
        }
    }
    assert kinds.all() == (
        NOW,
        {"reaper": Count(2, NOW + 5_000_000, {"lost": 5, "taken": 1}), "recovery": Count(1, NOW + 5_000_000, {})},
    )


def test_a_redis_that_was_emptied_has_counted_nothing() -> None:
    nothing = {kind: Passes(0, None, dict.fromkeys(done, 0)) for kind, done in MEANINGS.items()}
    assert asdict(counted()) == {"since": None, **{kind: asdict(one) for kind, one in nothing.items()}}


@pytest.mark.parametrize("kind", PASSES)
def test_a_pass_that_finds_nothing_notes_that_it_ran(kind: str, redis: Redis) -> None:
    begun = datetime.now(UTC).replace(microsecond=0)
    PASSES[kind]()
    assert kept(redis) == {f"{kind}.passes": "1"}
    last = getattr(counted(), kind).last
    assert begun <= last <= datetime.now(UTC)


@pytest.mark.parametrize("kind", PASSES)
def test_what_a_pass_did_is_counted_once_and_added_to_the_next(kind: str, redis: Redis) -> None:
    unreadable(redis, "a", "b")
    PASSES[kind]()
    unreadable(redis, "c")
    PASSES[kind]()
    PASSES[kind]()
    assert kept(redis) == {f"{kind}.passes": "3", f"{kind}.unreadable": "3"}


def test_each_number_of_a_pass_is_counted_under_its_name(redis: Redis) -> None:
    passes = {"reaper": (signals.reaped, Reaped), "recovery": (signals.jobs_recovered, Recovered)}
    expected = {}
    for kind, (signal, outcome) in passes.items():
        names = [one.name for one in fields(outcome)]
        assert set(names) == set(MEANINGS[kind])
        done = {name: number for number, name in enumerate(names, start=1)}
        signal.send(sender=None, outcome=outcome(**done))
        expected |= {f"{kind}.{name}": str(number) for name, number in done.items()} | {f"{kind}.passes": "1"}
    assert kept(redis) == expected
    assert counted().reaper.done == asdict(Reaped(**{n: int(expected[f"reaper.{n}"]) for n in MEANINGS["reaper"]}))
    assert list(counted().recovery.done) == list(MEANINGS["recovery"])


def test_a_pass_that_was_cut_short_is_counted_for_what_it_did(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise DatabaseAway("PostgreSQL: gone")

    unreadable(redis, "a")
    monkeypatch.setattr(reaper, "_published", away)
    with pytest.raises(DatabaseAway):
        reap()
    assert kept(redis) == {"reaper.passes": "1", "reaper.unreadable": "1"}


@pytest.mark.parametrize("kind", PASSES)
def test_a_redis_that_cannot_count_breaks_no_pass(
    kind: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely = absent_redis()
    gone = Counts(refresh_settings(), lonely, lonely)
    with pytest.raises(QueueUnavailable):
        gone.add(kind, {})
    monkeypatch.setattr(pass_counts, "counts", lambda: gone)
    unreadable(redis, "a")
    PASSES[kind]()
    assert whole_redis(redis)["jobs"].keys() == {MEMORY}
    assert kept(redis) == {}
    lonely.close()


def test_the_counts_do_not_grow_with_the_jobs(
    redis: Redis, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    start("SCAN", [[NewJob("a.job", job_id=f"j{number}")] for number in range(30)])
    for _ in range(3):
        unreadable(redis, *(f"x{number}" for number in range(30)))
        reap()
        recover_jobs(publish)
    with django_assert_num_queries(0):
        since, kinds = counts().all()
    assert since > 0
    assert {kind: set(one.done) for kind, one in kinds.items()} == {"reaper": {"unreadable"}, "recovery": set()}


def test_every_count_is_documented_with_its_meaning() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for kind, meanings in MEANINGS.items():
        for what, meaning in meanings.items():
            assert f"| {kind} | `{what}` | {meaning} |" in text
