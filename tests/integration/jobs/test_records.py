"""The records of jobs in progress: each verb over a table of states, the whole Redis before and after."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from executions.conf import refresh_settings
from executions.queue import JobRecord, JobRecords, Offer, Run, Verdict
from executions.queue.job_records import Memory
from tests.integration.state import Clock, Redis, source_with_clock_of_test, whole_redis

NOW = 1_000_000_000_000
SECOND = 1_000_000
TTL = 10 * SECOND
DAY = 24 * 3600 * SECOND
PREFIX = "cache:execution:refresh:"
OFFER = Offer("j", 7, revision=0, runs=0, most=5, published=NOW)

Faked = tuple[JobRecords, Clock]


@pytest.fixture
def faked(redis: Redis) -> Faked:
    settings = replace(refresh_settings(), node_ttl=10)
    return JobRecords(settings, redis, redis, source_with_clock_of_test), Clock(redis, NOW)


def record(  # noqa: PLR0917  # the parts of a record, in their order
    revision: int = 0,
    status: str = "Running",
    runs: int = 1,
    at: int = NOW,
    node: str = "me",
    acknowledged: str = "",
    sent: int = 1,
    message: str = "",
) -> str:
    return f"{revision}|{status}|{runs}|{at}|{node}|7|{acknowledged}|{sent}|{message}"


def given(client: Redis, state: dict[str, Any]) -> None:
    for name, value in state.items():
        match name:
            case "jobs":
                client.hset(PREFIX + name, mapping=value)
            case "nodes" | "stops" | "doubts":
                client.zadd(PREFIX + name, value)
            case _:
                client.set(PREFIX + name, value)


SINCE = {"since": str(NOW - DAY)}
ME = {"nodes": {"me": NOW}}


@dataclass(frozen=True)
class Begin:
    before: dict[str, Any]
    after: dict[str, Any]
    verdict: str
    revision: int
    offer: Offer = OFFER


def unchanged(verdict: str, revision: int, state: dict[str, Any], offer: Offer = OFFER) -> Begin:
    """But for the sign of life that its node has given."""
    nodes = {"nodes": state.get("nodes", {}) | {"me": NOW}}
    return Begin(state, state | nodes, verdict, revision, offer)


BEGIN = {
    "a job without a record runs, in the revision of its message": Begin(
        SINCE, SINCE | ME | {"jobs": {"j": record()}}, "go", 0
    ),
    "an empty Redis begins to remember, and believes a message of this moment": Begin(
        {}, {"since": str(NOW)} | ME | {"jobs": {"j": record()}}, "go", 0
    ),
    "a message from before it remembers is asked of the database": Begin(
        {}, {"since": str(NOW)} | ME, "ask", 0, replace(OFFER, published=NOW - 1)
    ),
    "so is one that is older than stops are remembered": unchanged(
        "ask", 0, {"since": str(NOW - 2 * DAY)}, replace(OFFER, published=NOW - DAY - 1)
    ),
    "so is one among the doubts": unchanged("ask", 0, SINCE | {"doubts": {"j": NOW}}),
    "and one that may be a second one": unchanged("ask", 0, SINCE, replace(OFFER, published=1)),
    "once the database was asked it runs": Begin(
        SINCE | {"doubts": {"j": NOW}},
        SINCE | {"doubts": {"j": NOW}} | ME | {"jobs": {"j": record(3, runs=3)}},
        "go",
        3,
        replace(OFFER, revision=3, runs=2, published=0),
    ),
    "one that runs on a live node is left to it": unchanged(
        "alive", 4, SINCE | {"nodes": {"other": NOW - TTL}, "jobs": {"j": record(4, node="other")}}
    ),
    "even on this one": unchanged("alive", 4, SINCE | ME | {"jobs": {"j": record(4)}}),
    "one that runs on a dead node runs again, in a new revision": Begin(
        SINCE | {"nodes": {"other": NOW - TTL - 1}, "jobs": {"j": record(4, runs=2, node="other")}},
        SINCE | {"nodes": {"other": NOW - TTL - 1, "me": NOW}, "jobs": {"j": record(5, runs=3)}},
        "go",
        5,
    ),
    "one that waits runs in the revision it waits in": Begin(
        SINCE | {"jobs": {"j": record(4, "Scheduled", runs=2, node="", sent=0, acknowledged="3 Running 5")}},
        SINCE | ME | {"jobs": {"j": record(4, runs=3, acknowledged="3 Running 5")}},
        "go",
        4,
    ),
    "one that has ended is over": unchanged("over", 2, SINCE | {"jobs": {"j": record(2, "Error", node="x")}}),
    "but not if its message is of a newer revision: somebody has tried it again": Begin(
        SINCE | {"jobs": {"j": record(2, "Error", runs=9, node="x", acknowledged="1 Running 5")}},
        SINCE | ME | {"jobs": {"j": record(3, runs=4)}},
        "go",
        3,
        replace(OFFER, revision=3, runs=3),
    ),
    "which asks like any other": Begin(
        SINCE | {"jobs": {"j": record(2, "Error")}, "doubts": {"j": NOW}},
        SINCE | {"jobs": {"j": record(2, "Error")}, "doubts": {"j": NOW}} | ME,
        "ask",
        3,
        replace(OFFER, revision=3, runs=3),
    ),
    "one that was stopped does not begin": unchanged("stopped", 0, SINCE | {"stops": {"j": NOW - 5}}),
    "one that has begun too often ends as Error": Begin(
        SINCE | {"jobs": {"j": record(4, "Pending", runs=5, node="")}},
        SINCE
        | ME
        | {
            "jobs": {
                "j": record(
                    4,
                    "Error",
                    runs=5,
                    message=OFFER.why_exhausted,
                )
            }
        },
        "exhausted",
        4,
    ),
    "a record that nobody can read is none": Begin(
        SINCE | {"jobs": {"j": "nonsense"}}, SINCE | ME | {"jobs": {"j": record()}}, "go", 0
    ),
}


@pytest.mark.parametrize("name", BEGIN)
def test_begin(name: str, redis: Redis, faked: Faked) -> None:
    case = BEGIN[name]
    given(redis, case.before)
    verdict, run = faked[0].begin(case.offer, "me")
    assert (verdict, run.revision) == (Verdict(case.verdict), case.revision)
    assert whole_redis(redis) == case.after
    if verdict == Verdict.GO:
        written = JobRecord.read("j", case.after["jobs"]["j"])
        assert written
        assert run == Run("j", 7, "me", written.revision, written.runs, NOW)


#: The run that all of these are about. It began a while ago.
RUN = Run("j", 7, "me", revision=2, runs=1, begun=NOW - 60 * SECOND)
#: Redis was emptied while it ran.
EMPTIED = {"since": str(NOW - 30 * SECOND)}


@dataclass(frozen=True)
class Settle:
    before: dict[str, Any]
    after: dict[str, Any]
    now: int | None
    arguments: dict[str, Any] = field(default_factory=dict)


def settled(before: str, after: str, now: int | None, **arguments: Any) -> Settle:
    return Settle({"jobs": {"j": before}}, {"jobs": {"j": after}}, now, arguments)


RAN = record(2, at=NOW - 9, message="layer 3")
ENDED = record(2, "Success", at=NOW - 5, message="done")
TRY_AGAIN = record(3, "Scheduled", at=NOW + 30 * SECOND, node="", sent=0, message="done")
SETTLE = {
    "a run ends with its status and its message": settled(RAN, record(2, "Success", message="done"), 2),
    "to end it twice is to end it once": settled(ENDED, ENDED, 2),
    "but not otherwise than it has ended": settled(record(2, "Error"), record(2, "Error"), None),
    "a run of another revision changes nothing": settled(record(3), record(3), None),
    "nor does a run that another node has now": settled(record(2, node="other"), record(2, node="other"), None),
    "another try waits in a new revision, and is not sent yet": settled(
        RAN, TRY_AGAIN, 3, status="Scheduled", delay=30.0
    ),
    "a run that Redis has forgotten since ends as if it had not": Settle(
        EMPTIED, EMPTIED | {"jobs": {"j": record(2, "Success", message="done")}}, 2
    ),
    "and tries again as if it had not": Settle(
        EMPTIED, EMPTIED | {"jobs": {"j": TRY_AGAIN}}, 3, {"status": "Scheduled", "delay": 30.0}
    ),
    "one that was stopped meanwhile does not try again: it ends as Stopped": Settle(
        {"jobs": {"j": RAN}, "stops": {"j": NOW}},
        {"jobs": {"j": record(2, "Stopped", message="done")}, "stops": {"j": NOW}},
        None,
        {"status": "Scheduled", "delay": 30.0},
    ),
    "of a run that is over, as far as Redis knows, the database decides": Settle(SINCE, SINCE, 2),
    "but it does not run again": Settle(SINCE, SINCE, None, {"status": "Scheduled", "delay": 30.0}),
}


@pytest.mark.parametrize("name", SETTLE)
def test_settle(name: str, redis: Redis, faked: Faked) -> None:
    case = SETTLE[name]
    given(redis, case.before)
    arguments = {"status": "Success", "message": "done"} | case.arguments
    assert faked[0].settle(RUN, **arguments) == case.now
    assert whole_redis(redis) == case.after


def test_to_check_in_tells_that_it_goes_on_and_whether_it_should_stop(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    given(redis, {"jobs": {"j": record(2, message="layer 1")}})
    clock.move(1)
    assert records.check_in(RUN) is False
    assert whole_redis(redis) == {"jobs": {"j": record(2, at=NOW + SECOND, message="layer 1")}}
    given(redis, {"stops": {"j": NOW}})
    assert records.check_in(RUN, "layer 2") is True
    assert whole_redis(redis)["jobs"] == {"j": record(2, at=NOW + SECOND, message="layer 2")}


@pytest.mark.parametrize("kept", [record(3), record(2, node="other"), record(2, "Error"), None])
def test_a_run_that_is_not_its_nodes_any_more_should_stop(kept: str | None, redis: Redis, faked: Faked) -> None:
    state = SINCE | ({"jobs": {"j": kept}} if kept else {})
    given(redis, state)
    assert faked[0].check_in(RUN, "late") is True
    assert whole_redis(redis) == state


def test_a_run_that_redis_has_forgotten_is_known_again_when_it_checks_in(redis: Redis, faked: Faked) -> None:
    assert faked[0].check_in(RUN) is False
    assert whole_redis(redis) == {"since": str(NOW), "jobs": {"j": record(2)}}


def test_an_emptied_redis_knows_all_again_once_it_was_looked_up(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    assert records.memory() == Memory(NOW, is_fresh=True, is_complete=False)
    clock.move(10)
    assert records.memory() == Memory(NOW, is_fresh=True, is_complete=False)
    clock.move(0.000001)
    assert records.memory() == Memory(NOW, is_fresh=False, is_complete=False)
    assert records.memory(looked_up=NOW) == Memory(NOW, is_fresh=False, is_complete=True)
    assert records.memory() == Memory(NOW, is_fresh=False, is_complete=True)
    redis.delete(PREFIX + "since")
    assert records.memory() == Memory(clock.now, is_fresh=True, is_complete=False)
    assert whole_redis(redis) == {"since": str(clock.now), "seen": str(NOW)}


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
            }
        },
    )
    landed = [("ended", 2, "Success"), ("ended otherwise", 2, "Success"), ("runs", 2, "Running")]
    landed += [("further", 2, "Error"), ("noted before", 2, "Success"), ("gone", 1, "Success")]
    landed += [("runs, as far as Redis was told", 2, "Error")]
    assert faked[0].acknowledge(landed) == 3
    assert whole_redis(redis) == {
        "jobs": {
            "runs": record(2, acknowledged=f"2 Running {NOW}"),
            "further": record(3, acknowledged=f"2 Error {NOW}"),
            "noted before": record(3, acknowledged="3 Running 5"),
            "not landed": record(1),
        }
    }


def test_to_stop_is_remembered_for_who_waits_and_told_to_who_runs(redis: Redis, faked: Faked) -> None:
    records, _ = faked
    jobs = {"runs": record(), "waits": record(1, "Scheduled", node=""), "over": record(1, "Error")}
    given(redis, {"jobs": jobs, "stops": {"long ago": NOW - DAY, "lately": NOW - DAY + 1}})
    assert records.stop(["runs", "waits", "over", "unknown"]) == 1
    assert whole_redis(redis) == {
        "jobs": {"runs": jobs["runs"], "over": jobs["over"]},
        "stops": {"runs": NOW, "waits": NOW, "unknown": NOW, "lately": NOW - DAY + 1},
    }
    assert 0 < redis.pttl(PREFIX + "stops") <= DAY // 1000


def test_stops_are_forgotten_of_those_that_are_to_run_again(redis: Redis, faked: Faked) -> None:
    given(redis, {"stops": {"a": NOW, "b": NOW, "c": NOW}})
    faked[0].forget_stops(["a", "c", "unknown"])
    assert whole_redis(redis) == {"stops": {"b": NOW}}


def test_a_record_is_replaced_only_if_it_is_what_was_seen(redis: Redis, faked: Faked) -> None:
    records, _ = faked
    given(redis, {"jobs": {"same": record(), "other": record(2), "gone over": record(3, "Error")}})
    seen = {job: one for page in records.all() for job, one in page if one}
    given(redis, {"jobs": {"other": record(5)}})
    changes: list[tuple[JobRecord, JobRecord | None]] = [
        (seen["same"], seen["same"].given_back(NOW)),
        (seen["other"], seen["other"].given_back(NOW)),
        (seen["gone over"], None),
    ]
    assert records.replace(changes) == [True, False, True]
    assert whole_redis(redis) == {"jobs": {"same": record(1, "Pending", node="", sent=0), "other": record(5)}}


def test_doubts_are_noted_with_the_time_and_forgotten_after_a_day(redis: Redis, faked: Faked) -> None:
    records, clock = faked
    assert records.clock() == (NOW, NOW)
    assert whole_redis(redis) == {"since": str(NOW)}
    clock.move(5)
    assert records.clock(["a", "b"]) == (NOW + 5 * SECOND, NOW)
    clock.move(24 * 3600)
    assert records.clock(["c"]) == (clock.now, NOW)
    assert whole_redis(redis) == {"since": str(NOW), "doubts": {"c": clock.now}}


@pytest.mark.parametrize(
    "text",
    [
        record(3, "Success", 2, 5, "n", "2 Running 4", 0, "a|b|c"),
        record(0, "Pending", 0, 0, ""),
        record(message=""),
    ],
)
def test_a_record_reads_as_it_was_written(text: str) -> None:
    found = JobRecord.read("j", text)
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize(
    "text",
    ["", "1|2", record(status="Succeed"), record().replace("7", "x"), record(acknowledged="1 Later 2"), "a" * 99],
)
def test_a_record_that_cannot_be_read_is_told_apart(text: str) -> None:
    assert JobRecord.read("j", text) is None


def test_records_come_in_pages_and_by_name(redis: Redis, faked: Faked) -> None:
    records, _ = faked
    assert list(records.all()) == []
    given(redis, {"jobs": {f"j{number}": record(number) for number in range(1200)} | {"bad": "nonsense"}})
    found = dict(pair for page in records.all() for pair in page)
    assert found.keys() == {f"j{number}" for number in range(1200)} | {"bad"}
    assert found["bad"] is None
    assert {job: one.revision for job, one in records.of(["j7", "bad", "none"]).items()} == {"j7": 7}
    records.forget(["bad"])
    assert redis.hlen(PREFIX + "jobs") == 1200
