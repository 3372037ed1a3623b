"""`manage.py harbor`, of jobs: what it tells of the jobs, and what it does with those of an execution."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.deletion import delete
from harbor_refresh.executions.models import Execution
from harbor_refresh.executions.models.operations import Verb
from harbor_refresh.tasks.actions import bulk_slice
from harbor_refresh.tasks.actions.bulk_verbs import VERBS
from harbor_refresh.tasks.jobs.lifecycle import job_stops
from harbor_refresh.tasks.jobs.lifecycle.job_creation import NewJob, start
from harbor_refresh.tasks.jobs.overview import inspection, pass_counts
from harbor_refresh.tasks.jobs.overview.pass_counts import MEANINGS
from harbor_refresh.tasks.jobs.records.counts import Counts
from harbor_refresh.tasks.jobs.records.records import JobRecords, job_records
from harbor_refresh.tasks.jobs.repair import reaper
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

    assert counted_by("stop", execution) == {"changed": 1, "skipped": 0, "failed": 0}
    assert statuses(execution) == ("Stopped", {"waits": "Stopped", "runs": "Stopped"})
    assert statuses(other) == ("Running", {"other": "Pending"})
    assert {job: one.asked for job, one in job_records().of(["waits", "runs"]).items()} == {"runs": True}
    assert counted_by("stop", execution, other) == {"changed": 1, "skipped": 1, "failed": 0}


def test_retry_runs_once_more_what_failed_and_waits_for_no_worker() -> None:
    execution, other = started("a", "b", "c"), started("fine")
    failed(execution, "a", "b")

    assert counted_by("retry", execution, other) == {"changed": 1, "skipped": 1, "failed": 0}
    assert statuses(execution)[1] == {"a": "Pending", "b": "Pending", "c": "Pending"}
    assert set(execution.tasks.values_list("job_id", "status_revision")) == {("a", 1), ("b", 1), ("c", 0)}
    assert counted_by("retry", execution) == {"changed": 0, "skipped": 1, "failed": 0}


def counted_by(verb: str, *executions: Execution) -> dict[str, int]:
    told = data("harbor", verb, *(one.pk for one in executions))
    return {what: told[what] for what in ("changed", "skipped", "failed")}


@pytest.mark.parametrize("verb", ["stop", "retry", "resume", "delete"])
def test_executions_that_there_are_not_are_named_and_nothing_is_changed(verb: str) -> None:
    known = started("a", "b")
    failed(known, "a")

    assert failing("harbor", verb, 99_998, known.pk, 99_999) == (
        "",
        "there is no execution 99998, 99999; nothing was changed",
    )
    assert statuses(known) == ("Running", {"a": "Error", "b": "Pending"})


def test_an_execution_of_reports_is_stopped_as_well_and_has_nothing_to_retry() -> None:
    reported = create(NewExecution("SCAN", tasks=[NewTask(job_id="of a runner")]))
    assert counted_by("retry", reported) == {"changed": 0, "skipped": 1, "failed": 0}
    assert counted_by("stop", reported) == {"changed": 1, "skipped": 0, "failed": 0}
    assert statuses(reported) == ("Stopped", {"of a runner": "Stopped"})


def test_an_execution_that_is_deleted_before_its_turn_is_left_out_and_the_others_are_seen_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone, left = started("a"), started("b")

    def after_a_delete(ids: Sequence[int]) -> Any:
        delete([gone.pk])
        return VERBS[Verb.STOP].act(ids)

    monkeypatch.setattr(bulk_slice, "VERBS", {Verb.STOP: replace(VERBS[Verb.STOP], act=after_a_delete)})
    assert counted_by("stop", gone, left)["changed"] == 1
    assert statuses(left)[0] == "Stopped"


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
        (["harbor", "retry", "x"], "argument ID: 'x' is not a whole number from 1"),
        (["harbor", "repair"], "the following arguments are required: PART"),
        (["harbor", "repair", "all"], "argument PART: invalid choice: 'all'"),
    ],
)
def test_a_misused_command_ends_with_2(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line in misuse(capsys, *words)
