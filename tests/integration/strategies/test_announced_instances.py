"""The numbers that instances announce: two with one number, one that is missing, one that ends."""

import json
import threading
import time
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from harbor_refresh.executions.errors import QueueUnavailable
from harbor_refresh.tasks import pacing
from harbor_refresh.tasks.queue.node import this_node
from harbor_refresh.tasks.strategies import instances
from tests.integration.concurrency import DEADLINE_SECONDS, at_once, wait_until
from tests.integration.redis_state import Redis, whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")


def test_a_worker_whose_number_another_has_waits_and_refuses_with_both_their_names(
    hashing: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other beats before each look of this one, however slow the machine is."""
    announce = instances.all_instances().announce

    def announce_beside_another(number: int, node: str, *, if_free: bool = False) -> instances.Announced:
        monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
        announce(0, "the-other-node")
        seen = announce(number, node, if_free=if_free)
        monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 0.6)
        return seen

    monkeypatch.setattr(instances.all_instances(), "announce", announce_beside_another)
    began = time.monotonic()
    with pytest.raises(SystemExit) as refused:
        instances.refuse_without_a_number()
    assert time.monotonic() - began > 0.7
    line = str(refused.value)
    assert "CORE_INSTANCE_ID: got 0" in line
    assert "the-other-node" in line
    assert this_node.name in line
    assert "\n" not in line
    assert this_node.name not in str(whole_redis(redis)["instances"])


def test_a_worker_takes_the_number_of_one_that_was_killed_as_soon_as_that_is_silent(
    hashing: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the 60 s that a node may be silent, 59.4 are over when this one starts."""
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    began = time.monotonic()
    instances.all_instances().announce(0, "a-dead-node")
    redis.zincrby("cache:execution:refresh:instances", -59_400_000, "0:a-dead-node")
    instances.refuse_without_a_number()
    assert 0.5 < time.monotonic() - began < 30
    assert instances.announced() == {0: [this_node.name]}


def test_of_two_that_want_one_number_at_the_same_moment_one_gets_it(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    seen = at_once(
        *(
            lambda name=name: instances.all_instances().announce(1, name, if_free=True)
            for name in ("a", "b", "c", "d")
        )
    )
    assert len(instances.announced()[1]) == 1
    assert all(one[1] == seen[0][1] for one in seen)


def test_number_one_is_not_taken_by_number_eleven(hashing: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    instances.all_instances().announce(11, "eleven")
    instances.all_instances().announce(1, "one", if_free=True)
    assert instances.announced() == {1: ["one"], 11: ["eleven"]}


def test_instances_that_fall_silent_are_forgotten_and_leave_no_key(
    hashing: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    instances.all_instances().announce(1, "b")
    redis.zadd("cache:execution:refresh:instances", {"2:from-a-clock-that-went-back": 9e15, "x:y": 9e15})
    assert instances.all_instances().announce(0, "a") == {0: ["a"], 1: ["b"]}
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 0.6)
    wait_until(lambda: instances.all_instances().announce(0, "a") == {0: ["a"]}, "the silent one to be forgotten")
    wait_until(lambda: redis.keys("*") == [], "the key to expire")


def test_one_that_ends_cleanly_is_forgotten_at_once(hashing: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    instances.refuse_without_a_number()
    instances.start()
    wait_until(lambda: instances.announced() == {0: [this_node.name]}, "the announcement")
    instances.stop()
    assert instances.announced() == {}


def test_a_sign_of_life_that_is_under_way_at_the_end_is_waited_for(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come after the withdrawal, and speak for a worker that is gone."""
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    announce, under_way = instances.all_instances().announce, threading.Event()

    def announce_slowly(*args: Any, **options: Any) -> Any:
        under_way.set()
        threading.Event().wait(0.3)
        return announce(*args, **options)

    monkeypatch.setattr(instances.all_instances(), "announce", announce_slowly)
    instances.start()
    assert under_way.wait(DEADLINE_SECONDS)
    instances.stop()
    wait_until(lambda: all(one.name != "instance" for one in threading.enumerate()), "the thread to end")
    assert instances.announced() == {}


def test_a_worker_whose_redis_is_away_starts_all_the_same(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any, **__: Any) -> instances.Announced:
        raise QueueUnavailable("Redis: away")

    monkeypatch.setattr(instances.all_instances(), "announce", away)
    instances.refuse_without_a_number()
    assert "cannot announce its CORE_INSTANCE_ID" in caplog.text


def test_numbers_that_are_doubled_or_missing_are_told_once_until_that_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = instances.FaultLog(3, patience=0)

    def lines(seen: instances.Announced) -> list[str]:
        caplog.clear()
        faults.update(seen)
        return [one.getMessage() for one in caplog.records]

    assert lines({0: ["a"], 1: ["b"], 2: ["c"]}) == []
    assert lines({0: ["a"], 2: ["c", "d"]}) == [
        "CORE_INSTANCE_ID 2 is announced by c, d: they do the same work",
        "Nobody announces CORE_INSTANCE_ID 1 of 3: their executions wait",
    ]
    assert lines({0: ["a"], 2: ["c", "d"]}) == []
    assert lines({0: ["a"], 1: ["b"], 2: ["c"]}) == []
    assert lines({0: ["a"], 1: ["b"]}) == ["Nobody announces CORE_INSTANCE_ID 2 of 3: their executions wait"]


def test_a_number_that_is_missing_is_given_the_time_of_a_restart(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = instances.FaultLog(2, patience=60)
    faults.update({0: ["a"]})
    assert caplog.text == ""
    later = time.monotonic() + 61
    monkeypatch.setattr(instances.time, "monotonic", lambda: later)
    faults.update({0: ["a"]})
    assert "Nobody announces CORE_INSTANCE_ID 1 of 2" in caplog.text


def test_stats_tell_who_is_which_instance_and_what_is_wrong_with_that(
    hashing: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "NODE_TTL_SECONDS", 60)
    for number, node in ((0, "a"), (2, "b"), (2, "c")):
        instances.all_instances().announce(number, node)
    call_command("harbor", "status", "--json")
    assert json.loads(capsys.readouterr().out)["instances"] == {
        "total": 3,
        "announced": {"0": ["a"], "2": ["b", "c"]},
        "doubled": [2],
        "missing": [1],
    }
    call_command("harbor", "status")
    shown = capsys.readouterr().out
    for line in (
        "Instance 2 of 3: b, c",
        "CORE_INSTANCE_ID 2 is announced by several workers: they do the same work.",
        "No worker announces CORE_INSTANCE_ID 1: its executions wait.",
    ):
        assert line in shown
