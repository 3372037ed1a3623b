"""The records of jobs in progress: each verb over a table of states, the whole Redis before and after."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs.records.record import UNKNOWN, JobRecord
from harbor_refresh.tasks.jobs.records.records import JobRecords, Memory
from harbor_refresh.tasks.jobs.records.run import Begun, LeaseAnswer, ReceivedMessage, Run, Verdict
from tests.integration.redis_state import MEMORY, Clock, Redis, signs_of_life_come, whole_redis, with_clock_of_test

NOW = 1_000_000_000_000
SECOND = 1_000_000
TTL = 10 * SECOND
DAY = 24 * 3600 * SECOND
PREFIX = "cache:execution:refresh:"
RECEIVED = ReceivedMessage("j", 7, revision=0, runs=0)
#: Beyond what a double tells apart: a number of Lua's would round it.
HUGE = 2**60 + 1

Faked = tuple[JobRecords, Clock]


@pytest.fixture
def faked(redis: Redis) -> Faked:
    return JobRecords(refresh_settings(), redis, redis, with_clock_of_test), Clock(redis, NOW)


def record(  # noqa: PLR0917  # the parts of a record, in their order
    revision: int = 0,
    status: str = "Running",
    runs: int = 1,
    at: int = NOW,
    node: str = "me",
    acknowledged: str = "",
    sent: int = 1,
    message: str = "",
    *,
    renewed: int = NOW,
    asked: int = 0,
) -> str:
    return f"{revision}|{status}|{runs}|{at}|{renewed}|{node}|7|{acknowledged}|{sent}|{asked}|{message}"


def given(client: Redis, state: dict[str, Any]) -> None:
    for name, value in state.items():
        match name:
            case "jobs" | "presence":
                client.hset(PREFIX + name, mapping=value)
            case "nodes":
                client.zadd(PREFIX + name, value)


def run(**parts: Any) -> Run:
    return replace(Run("j", 7, "me", revision=2, runs=1), **parts)


@dataclass(frozen=True)
class Begin:
    """`before` and `after` are the record; None for none."""

    before: str | None
    after: str | None
    verdict: str
    revision: int
    received: ReceivedMessage = RECEIVED


def unchanged(verdict: str, revision: int, before: str) -> Begin:
    return Begin(before, before, verdict, revision)


#: Of a run whose lease is as old as it may be, and of one whose is older.
IN_FORCE, RUN_OUT = NOW - TTL, NOW - TTL - 1
BEGIN = {
    "a job without a record runs, in the revision of its message": Begin(None, record(), "go", 0),
    "one that runs is left to its run": unchanged("alive", 4, record(4, node="other", renewed=IN_FORCE)),
    "even on this node": unchanged("alive", 4, record(4)),
    "one whose run is dead runs again, in a new revision": Begin(
        record(4, runs=2, node="other", renewed=RUN_OUT), record(5, runs=3), "go", 5
    ),
    "a revision is exact, however high": Begin(
        record(HUGE, runs=2, node="other", renewed=RUN_OUT), record(HUGE + 1, runs=3), "go", HUGE + 1
    ),
    "one that waits runs in the revision it waits in": Begin(
        record(4, "Scheduled", runs=2, node="", sent=0, acknowledged="3 Running 5"),
        record(4, runs=3, acknowledged="3 Running 5"),
        "go",
        4,
    ),
    "one that has ended is over": unchanged("over", 2, record(2, "Error", node="x")),
    "but not if its message is of a newer revision: it was tried again": Begin(
        record(2, "Error", runs=9, node="x", acknowledged="1 Running 5"),
        record(3, runs=4),
        "go",
        3,
        replace(RECEIVED, revision=3, runs=3),
    ),
    "nor does a record that is older than its message": Begin(
        record(2, runs=9, node="x"), record(3, runs=4), "go", 3, replace(RECEIVED, revision=3, runs=3)
    ),
    "a lease from the future is of a clock that has gone back: it has run out": Begin(
        record(4, runs=2, node="other", renewed=NOW + TTL + 1), record(5, runs=3), "go", 5
    ),
    "a record that cannot be read is none": Begin("nonsense", record(), "go", 0),
}


@pytest.mark.parametrize("name", BEGIN)
def test_begin(name: str, redis: Redis, faked: Faked) -> None:
    case = BEGIN[name]
    signs_of_life_come(redis, since=NOW - DAY, heard=NOW)
    given(redis, {"jobs": {"j": case.before}} if case.before else {})
    begun = faked[0].begin(case.received, "me")
    assert (begun.verdict, begun.run.revision) == (Verdict(case.verdict), case.revision)
    jobs = {"jobs": {"j": case.after}} if case.after else {}
    assert whole_redis(redis) == jobs | {"nodes": {"me": NOW}}
    if begun.verdict == Verdict.GO:
        written = JobRecord.read("j", case.after or "")
        assert written
        assert begun.run == Run("j", 7, "me", written.revision, written.runs)
        assert begun.before == (case.before if JobRecord.read("j", case.before or "") else "")


@pytest.mark.parametrize(
    "presence",
    [
        None,
        {"since": NOW - TTL, "heard": NOW},
        {"since": NOW - DAY, "heard": NOW - TTL // 2 - 1},
        {"since": NOW + 1, "heard": NOW},
        {"since": NOW - DAY, "heard": NOW, "server": "that was there before"},
    ],
    ids=["none was heard", "not for long enough", "a gap", "from the future", "another server"],
)
def test_a_run_whose_lease_has_run_out_may_be_alive_while_silence_does_not_mean_death(
    presence: dict[str, Any] | None, redis: Redis, faked: Faked
) -> None:
    if presence:
        here = signs_of_life_come(redis, since=NOW - DAY, heard=NOW)
        given(redis, {"presence": here | presence})
    given(redis, {"jobs": {"j": record(4, node="other", renewed=RUN_OUT)}})
    assert faked[0].begin(RECEIVED, "me").verdict == Verdict.ALIVE
    assert whole_redis(redis)["jobs"] == {"j": record(4, node="other", renewed=RUN_OUT)}


BEGUN = Begun(Verdict.GO, run(), "")
WAITED = record(2, "Scheduled", node="", sent=0)


@pytest.mark.parametrize(
    ("found", "before", "instead", "after"),
    [
        (record(2), "", None, None),
        (record(2), WAITED, None, WAITED),
        (record(2, asked=1), WAITED, "", None),
        (record(2), WAITED, record(3, node=UNKNOWN), record(3, node=UNKNOWN)),
    ],
    ids=[
        "a first run",
        "a run of a job that waited",
        "a run of a job that is over",
        "a run of a job that runs elsewhere",
    ],
)
def test_a_run_that_was_never_called_is_undone(  # noqa: PLR0917
    found: str, before: str, instead: str | None, after: str | None, redis: Redis, faked: Faked
) -> None:
    given(redis, {"jobs": {"j": found}})
    assert faked[0].undo(replace(BEGUN, before=before), instead=instead) is True
    assert whole_redis(redis) == ({"jobs": {"j": after}} if after else {})


@pytest.mark.parametrize("found", [None, record(3), record(2, node="other"), record(2, "Pending", node="me")])
def test_a_run_that_was_given_away_meanwhile_undoes_nothing(found: str | None, redis: Redis, faked: Faked) -> None:
    state = {"jobs": {"j": found}} if found else {}
    given(redis, state)
    assert faked[0].undo(replace(BEGUN, before=WAITED)) is False
    assert whole_redis(redis) == state


@dataclass(frozen=True)
class Settle:
    before: str | None
    after: str | None
    now: int | None
    arguments: dict[str, Any] = field(default_factory=dict)


RAN = record(2, at=NOW - 9, renewed=NOW - 5, message="layer 3")
ENDED = record(2, "Success", at=NOW - 5, message="done")
TRY_AGAIN = record(3, "Scheduled", at=NOW + 30 * SECOND, node="", sent=0, message="done")
ANOTHER_TRY = {"status": "Scheduled", "delay": 30.0}
SETTLE = {
    "a run ends with its status and its message": Settle(
        RAN, record(2, "Success", renewed=NOW - 5, message="done"), 2
    ),
    "to end it twice is to end it once": Settle(ENDED, ENDED, 2),
    "but not otherwise than it has ended": Settle(record(2, "Error"), record(2, "Error"), None),
    "a run of an earlier revision changes nothing": Settle(record(3), record(3), None),
    "nor does a run that another node has now": Settle(record(2, node="other"), record(2, node="other"), None),
    "another try waits in a new revision, and is not sent yet": Settle(record(2), TRY_AGAIN, 3, ANOTHER_TRY),
    "a run that Redis has forgotten ends as if it had not": Settle(None, record(2, "Success", message="done"), 2),
    "and tries again as if it had not": Settle(None, TRY_AGAIN, 3, ANOTHER_TRY),
    "so does one of which Redis knows an earlier revision": Settle(
        record(1, node="other"), record(2, "Success", message="done"), 2
    ),
    "and one that waits in the revision of the run, which began since": Settle(
        record(2, "Scheduled", node=""), record(2, "Success", message="done"), 2
    ),
    "and one that was looked for": Settle(record(2, node=UNKNOWN), record(2, "Success", message="done"), 2),
    "one that was asked to stop does not try again: it ends as Stopped": Settle(
        record(2, asked=1), record(2, "Stopped", asked=1, message="done"), None, ANOTHER_TRY
    ),
}


@pytest.mark.parametrize("name", SETTLE)
def test_settle(name: str, redis: Redis, faked: Faked) -> None:
    case = SETTLE[name]
    given(redis, {"jobs": {"j": case.before}} if case.before else {})
    arguments = {"status": "Success", "message": "done"} | case.arguments
    assert faked[0].settle(run(), **arguments) == case.now
    assert whole_redis(redis) == ({"jobs": {"j": case.after}} if case.after else {})


def test_to_check_in_tells_what_it_says_and_whether_it_should_stop(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    given(redis, {"jobs": {"j": record(2, message="layer 1")}})
    clock.move(1)
    assert records.check_in(run()) is False
    assert whole_redis(redis) == {"jobs": {"j": record(2, at=NOW + SECOND, message="layer 1")}}
    given(redis, {"jobs": {"j": record(2, message="layer 1", asked=1)}})
    assert records.check_in(run(), "layer 2") is True
    assert whole_redis(redis)["jobs"] == {"j": record(2, at=NOW + SECOND, message="layer 2", asked=1)}


@pytest.mark.parametrize("kept", [record(3), record(2, node="other"), record(2, "Error"), record(3, "Pending")])
def test_a_run_whose_job_has_ended_or_belongs_to_another_should_stop(
    kept: str, redis: Redis, faked: Faked
) -> None:
    given(redis, {"jobs": {"j": kept}})
    assert faked[0].check_in(run(), "late") is True
    assert whole_redis(redis) == {"jobs": {"j": kept}}


@pytest.mark.parametrize(
    "kept", [None, record(1, node="other"), record(2, node=UNKNOWN), record(2, "Pending", node="")]
)
def test_a_run_that_redis_has_forgotten_goes_on(kept: str | None, redis: Redis, faked: Faked) -> None:
    """Its heartbeat asks the database whether it stands, and has it recorded."""
    state = {"jobs": {"j": kept}} if kept else {}
    given(redis, state)
    assert faked[0].check_in(run(), "late") is False
    assert whole_redis(redis) == state


def test_leases_are_renewed_and_of_each_run_it_is_told_how_it_was_found(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    jobs = {
        "known": record(2, at=NOW - 9, renewed=NOW - 5, message="layer 1", asked=1),
        "older": record(1, node="other"),
        "looked for": record(2, node=UNKNOWN),
        "newer": record(3),
        "other": record(2, node="other"),
        "ended": record(2, "Success"),
    }
    given(redis, {"jobs": jobs})
    clock.move(1)
    runs = [run(job=job) for job in (*jobs, "gone")]
    found = [LeaseAnswer.KNOWN, *[LeaseAnswer.FORGOTTEN] * 2, *[LeaseAnswer.OTHER] * 3, LeaseAnswer.FORGOTTEN]
    assert records.renew(runs) == found
    renewed = jobs | {"known": record(2, at=NOW - 9, renewed=NOW + SECOND, message="layer 1", asked=1)}
    assert whole_redis(redis) == {"jobs": renewed}
    assert records.renew(runs, forgotten_too=True) == found
    anew = record(2, at=NOW + SECOND, renewed=NOW + SECOND)
    assert whole_redis(redis) == {"jobs": renewed | dict.fromkeys(["older", "looked for", "gone"], anew)}


def test_what_redis_remembers_advances_with_each_call(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    assert records.memory() == Memory(NOW, NOW, 1, is_settled=False)
    clock.move(1)
    assert records.memory(NOW, 1) == Memory(NOW + SECOND, NOW, 2, is_settled=False)
    assert whole_redis(redis) == {"jobs": {MEMORY: f"{NOW}|2"}}


def test_a_job_called_memory_is_a_job_like_any_other(redis: Redis, faked: Faked) -> None:
    faked[0].memory()
    given(redis, {"jobs": {"memory": record()}})
    assert faked[0].memory(NOW, 1) == Memory(NOW, NOW, 2, is_settled=False)
    assert whole_redis(redis) == {"jobs": {MEMORY: f"{NOW}|2", "memory": record()}}


def test_a_redis_that_comes_back_older_than_was_noted_begins_a_new_epoch(redis: Redis, faked: Faked) -> None:
    signs_of_life_come(redis, since=NOW - DAY, heard=NOW)
    given(redis, {"jobs": {MEMORY: "5|7", "j": record()}})
    assert faked[0].memory(5, 7) == Memory(NOW, 5, 8, is_settled=True)
    assert faked[0].memory(5, 9) == Memory(NOW, NOW, 1, is_settled=False)
    assert whole_redis(redis)["jobs"] == {MEMORY: f"{NOW}|1", "j": record()}


@pytest.mark.parametrize("since", [NOW, NOW - DAY])
def test_an_epoch_after_the_noted_one_is_new_and_one_before_it_came_back(
    since: int, redis: Redis, faked: Faked
) -> None:
    """However lately Redis was restarted."""
    signs_of_life_come(redis, since=since, heard=NOW)
    given(redis, {"jobs": {MEMORY: "5|7"}})
    assert faked[0].memory(4, 100) == Memory(NOW, 5, 8, is_settled=since < NOW)
    assert faked[0].memory(6, 1) == Memory(NOW, NOW, 1, is_settled=False)
    assert faked[0].memory(NOW + 9, 1) == Memory(NOW, NOW, 1, is_settled=False), "its clock is behind: once"


def test_a_redis_that_has_lost_its_records_has_lost_its_memory(redis: Redis, faked: Faked) -> None:
    signs_of_life_come(redis, since=NOW - DAY, heard=NOW)
    given(redis, {"jobs": {MEMORY: "5|7", "j": record()}})
    redis.delete(PREFIX + "jobs")
    assert faked[0].memory(5, 7) == Memory(NOW, NOW, 1, is_settled=False)


def test_what_has_ended_and_landed_is_forgotten_and_the_rest_is_noted(redis: Redis, faked: Faked) -> None:
    given(
        redis,
        {
            "jobs": {
                "ended": record(2, "Success"),
                "ended otherwise": record(2, "Stopped"),
                "runs": record(2),
                "runs, as far as Redis was told": record(2),
                "further": record(3),
                "noted before": record(3, acknowledged="3 Running 5"),
                "not landed": record(1),
                "high": record(HUGE + 1),
            }
        },
    )
    delivered = [("ended", 2, "Success"), ("ended otherwise", 2, "Success"), ("runs", 2, "Running")]
    delivered += [("further", 2, "Error"), ("noted before", 2, "Success"), ("gone", 1, "Success")]
    delivered += [("runs, as far as Redis was told", 2, "Error")]
    delivered += [("high", HUGE, "Success")]
    assert faked[0].acknowledge(delivered) == 3
    assert whole_redis(redis) == {
        "jobs": {
            "runs": record(2, acknowledged=f"2 Running {NOW}"),
            "further": record(3, acknowledged=f"2 Error {NOW}"),
            "noted before": record(3, acknowledged="3 Running 5"),
            "not landed": record(1),
            "high": record(HUGE + 1, acknowledged=f"{HUGE} Success {NOW}"),
        }
    }


def test_to_stop_forgets_what_waits_and_asks_what_runs(redis: Redis, faked: Faked) -> None:
    jobs = {"runs": record(), "waits": record(1, "Scheduled", node=""), "over": record(1, "Error")}
    given(redis, {"jobs": jobs})
    assert faked[0].stop(["runs", "waits", "over", "unknown"]) == 1
    assert whole_redis(redis) == {"jobs": {"runs": record(asked=1), "over": jobs["over"]}}


def test_a_record_is_replaced_only_if_it_is_what_was_seen(redis: Redis, faked: Faked) -> None:
    records, _ = faked
    given(redis, {"jobs": {"same": record(), "other": record(2), "gone over": record(3, "Error")}})
    seen = {job: one for page in records.all() for job, one in page if one}
    given(redis, {"jobs": {"other": record(5)}})
    changes: list[tuple[JobRecord, JobRecord | None]] = [
        (seen["same"], seen["same"].released(NOW, 1)),
        (seen["other"], seen["other"].released(NOW, 1)),
        (seen["gone over"], None),
    ]
    assert records.replace(changes) == [True, False, True]
    again = record(1, "Pending", node="", sent=0, renewed=0)
    assert whole_redis(redis) == {"jobs": {"same": again, "other": record(5)}}


@pytest.mark.parametrize(
    "text",
    [
        record(3, "Success", 2, 5, "n", "2 Running 4", 0, "a|b|c"),
        record(0, "Pending", 0, 0, "", renewed=0, asked=1),
        record(message=""),
    ],
)
def test_a_record_reads_as_it_was_written(text: str) -> None:
    found = JobRecord.read("j", text)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "1|2", record(status="Succeed"), record().replace("7", "x"), record(acknowledged="1 Later 2")),
        *("a" * 99, "00" + record(), record().replace("|7|", "|0|"), record().replace("|7|", f"|{2**63}|")),
        record(2**61),
    ],
)
def test_a_record_that_cannot_be_read_is_told_apart(text: str) -> None:
    assert JobRecord.read("j", text) is None


def test_records_come_in_pages_and_by_name(redis: Redis, faked: Faked) -> None:
    records, _ = faked
    assert list(records.all()) == []
    given(
        redis,
        {"jobs": {f"j{number}": record(number) for number in range(1200)} | {"bad": "nonsense", MEMORY: "1|1"}},
    )
    found = dict(pair for page in records.all() for pair in page)
    assert found.keys() == {f"j{number}" for number in range(1200)} | {"bad"}
    assert found["bad"] is None
    assert {job: one.revision for job, one in records.of(["j7", "bad", "none"]).items()} == {"j7": 7}
    records.forget(["bad"])
    assert redis.hlen(PREFIX + "jobs") == 1200 + 1
