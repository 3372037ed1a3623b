"""`manage.py harbor`, of jobs: what it tells of the jobs, and what it does with those of an execution."""

from typing import Any

import pytest

from harbor_refresh.executions.creation import NewExecution, NewTask, create
from harbor_refresh.executions.deletion import delete
from harbor_refresh.executions.errors import Contended
from harbor_refresh.tasks.jobs.lifecycle import job_stops
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.overview import inspection, pass_counts
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS
from harbor_refresh.tasks.jobs.records.counts import Counts
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.repair import reaper
from harbor_refresh.tasks.management.verbs.jobs import retry, stop
from harbor_refresh.tasks.models import Job
from harbor_refresh.tasks.queue.queue import ExecutionQueue
from tests.integration.command_output import data, failing, misuse, said
from tests.integration.jobs.jobs_in_progress import failed, started, statuses, written
from tests.integration.redis_state import Redis, absent_redis

pytestmark = pytest.mark.usefixtures("database", "queue")

NOTHING: dict[str, Any] = {
    "in_progress": {"Pending": 0, "Scheduled": 0, "Running": 0, "Stopped": 0, "Error": 0, "Success": 0},
    "not_landed": 0,
    "unreadable": 0,
    "unsent": 0,
    "in_chains": 0,
    "nodes": [],
    "counted_since": None,
    **{kind: {"passes": 0, "last": None, **dict.fromkeys(what, 0)} for kind, what in MEANINGS.items()},
}


def test_stats_of_nothing_are_all_there() -> None:
    assert data("harbor", "status", "--jobs") == NOTHING
    assert said("harbor", "status", "--jobs").splitlines()[:2] == [
        "            jobs",
        "pending        0  wait to be run again",
    ]


def test_stats_tell_what_runs_where_what_waits_and_what_has_not_landed(
    queue: ExecutionQueue, redis: Redis
) -> None:
    started("a", "b", "c", "d")
    start("SCAN", [[NewJob("a.job", job_id=job) for job in ("first", "then", "last")]])
    Job.objects.filter(task__job_id="d").update(published_at=None)
    queue.heartbeat("live")
    written(redis, "a", "Running", "live", landed=True)
    written(redis, "b", "Running", "live")
    written(redis, "c", "Running", "dead")
    written(redis, "e", "Scheduled")
    written(redis, "f", "Success", "live")
    redis.hset("cache:execution:refresh:jobs", "x", "nonsense")

    assert data("harbor", "status", "--jobs") == NOTHING | {
        "in_progress": NOTHING["in_progress"] | {"Scheduled": 1, "Running": 3, "Success": 1},
        "not_landed": 4,
        "unreadable": 1,
        "unsent": 1,
        "in_chains": 2,
        "nodes": [{"node": "live", "jobs": 2, "alive": True}, {"node": "dead", "jobs": 1, "alive": False}],
    }
    lines = said("harbor", "status", "--jobs").splitlines()
    assert lines[:17] == [
        "            jobs",
        "pending        0  wait to be run again",
        "scheduled      1  are to run later",
        "running        3  run",
        "stopped        0  were stopped, to be acknowledged",
        "error          0  failed, to be acknowledged",
        "success        1  done, to be acknowledged",
        "not landed     4  of these, their last status is not in the database yet",
        "unsent         1  recorded, and their message is still to be sent",
        "in chains      2  wait for the job before them",
        "unreadable     1  records that cannot be read; the reaper drops them",
        "",
        "node           runs",
        "live              2",
        "dead (silent)     1",
        "",
        "reaper: 0 passes, none yet",
    ]


def test_reap_runs_a_pass_tells_what_it_did_and_stats_count_it(redis: Redis) -> None:
    execution = started("a", "b")
    written(redis, "a", "Success", "live")
    redis.hset("cache:execution:refresh:jobs", "x", "nonsense")
    nothing = dict.fromkeys(MEANINGS["reaper"], 0)

    assert data("harbor", "repair", "jobs") == nothing | {"reported": 1, "unreadable": 1}
    assert statuses(execution)[1] == {"a": "Success", "b": "Pending"}
    assert said("harbor", "repair", "jobs") == "Nothing to settle."

    told = data("harbor", "status", "--jobs")["reaper"]
    assert told == nothing | {"reported": 1, "unreadable": 1, "passes": 2, "last": told["last"]}
    written(redis, "b", "Error", "live")
    assert said("harbor", "repair", "jobs").splitlines() == [
        "          jobs",
        "reported     1  ahead of the last delivered report, or there was none: reported again",
    ]


def test_stop_ends_what_waits_and_asks_what_runs(redis: Redis) -> None:
    execution, other = started("waits", "runs"), started("other")
    written(redis, "runs", "Running", "live")

    assert data("harbor", "stop", execution.pk) == {
        "stopped": [execution.pk],
        "asked": 1,
        "ended": [],
        "without_jobs": [],
        "unknown": [],
    }
    assert statuses(execution) == ("Stopped", {"waits": "Stopped", "runs": "Stopped"})
    assert statuses(other) == ("Running", {"other": "Pending"})
    assert {job: one.asked for job, one in job_records().of(["waits", "runs"]).items()} == {"runs": True}
    assert said("harbor", "stop", execution.pk, other.pk).splitlines() == [
        "Stopped 1 execution; 0 jobs run and were asked to stop.",
        f"Had ended before: {execution.pk}.",
    ]


def test_retry_runs_once_more_what_failed_and_waits_for_no_worker(redis: Redis) -> None:
    execution, other = started("a", "b", "c"), started("fine")
    failed(execution, "a", "b")

    assert data("harbor", "retry", execution.pk, other.pk) == {
        "jobs": 2,
        "executions": [execution.pk],
        "without_jobs": [],
        "unknown": [],
    }
    assert statuses(execution)[1] == {"a": "Pending", "b": "Pending", "c": "Pending"}
    assert set(execution.tasks.values_list("job_id", "status_revision")) == {("a", 1), ("b", 1), ("c", 0)}
    assert said("harbor", "retry", execution.pk) == "No job of these has failed."
    failed(execution, "c")
    assert said("harbor", "retry", execution.pk) == "1 job of 1 execution will be tried again."


@pytest.mark.parametrize(
    ("verb", "done"),
    [
        ("stop", "Stopped 1 execution; 0 jobs run and were asked to stop."),
        ("retry", "1 job of 1 execution will be tried again."),
    ],
)
def test_executions_that_cannot_be_meant_are_named_and_the_others_are_seen_to(verb: str, done: str) -> None:
    known = started("a", "b")
    failed(known, "a")
    reported = create(NewExecution("SCAN", tasks=[NewTask(job_id="of somebody else")]))

    printed, failure = failing("harbor", verb, 99_998, known.pk, reported.pk, 99_999)

    assert printed == f"{done}\n"
    assert failure == f"there is no execution 99998, 99999; no jobs belong to execution {reported.pk}"
    assert statuses(reported) == ("Running", {"of somebody else": "Pending"})


@pytest.mark.parametrize(
    ("verb", "act", "done"),
    [
        (stop, "stop_jobs", "Stopped 1 execution; 0 jobs run and were asked to stop."),
        (retry, "retry_failed", "1 job of 1 execution will be tried again."),
    ],
)
def test_an_execution_that_is_deleted_before_its_turn_is_unknown_and_the_others_are_seen_to(
    verb: Any, act: str, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, left = started("a"), started("b", "c")
    failed(left, "b")
    as_it_is = getattr(verb, act)

    def after_a_delete(pk: int, *more: Any) -> int:
        delete([gone.pk])
        return int(as_it_is(pk, *more))

    monkeypatch.setattr(verb, act, after_a_delete)
    name = verb.__name__.rpartition(".")[2]
    assert failing("harbor", name, gone.pk, left.pk) == (f"{done}\n", f"there is no execution {gone.pk}")


def test_an_error_of_ours_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = started("a")
    failed(execution, "a")

    def contended(pk: int) -> int:
        raise Contended

    monkeypatch.setattr(retry, "retry_failed", contended)
    printed, failure = failing("harbor", "retry", execution.pk)
    assert (printed, failure) == ("", f"{Contended.__doc__}")


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> Any:
    lonely = absent_redis()
    from harbor_refresh.tasks.conf import refresh_settings

    gone = JobRecords(refresh_settings(), lonely, lonely)
    for module in (inspection, reaper, job_stops):
        monkeypatch.setattr(module, "job_records", lambda: gone)
    monkeypatch.setattr(pass_counts, "counts", lambda: Counts(refresh_settings(), lonely, lonely))
    yield
    lonely.close()


@pytest.mark.usefixtures("redis_away")
@pytest.mark.parametrize("words", [("status", "--jobs"), ("repair", "jobs")])
def test_redis_being_away_is_one_clear_line_and_stops_nothing(words: tuple[str, str]) -> None:
    execution = started("a")

    printed, failure = failing("harbor", *words)

    assert printed == ""
    assert failure.startswith("Redis: ConnectionError")
    assert "Redis is away" in failure
    assert "\n" not in failure
    assert statuses(execution) == ("Running", {"a": "Pending"})


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["harbor", "stop"], "choose executions by an ID or an option, or all of them by --all"),
        (["harbor", "stop", "1", "--vendor", "SCAN"], "choose them by options, and not by both"),
        (["harbor", "retry", "1", "--dry-run"], "choose them by options, and not by both"),
        (["harbor", "retry", "x"], "argument ID: 'x' is not a whole number from 1"),
        (["harbor", "repair"], "the following arguments are required: PART"),
        (["harbor", "repair", "all"], "argument PART: invalid choice: 'all'"),
    ],
)
def test_a_misused_command_ends_with_2(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line in misuse(capsys, *words)
