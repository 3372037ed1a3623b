"""Each design on a real database and a real Redis: what it refreshes, what it leaves, what its faults cost."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from executions import points, signals
from executions.conf import refresh_settings
from executions.errors import NoInstance, QueueUnavailable
from executions.invariants import violations
from executions.models import Execution, Quarantine, StatusChange, Task
from executions.queue import cycle_lock, instances, member, outdated_keys, plain_set, this_node
from executions.queue.connection import connect
from executions.status import Status
from executions.strategies import STRATEGIES, strategy
from executions.strategies.instance import Instance, this_instance
from executions.strategies.scan import Scan
from executions.usecases import NewExecution, NewTask, Report, create, create_many, mark, reconcile, report
from executions.usecases.refreshing_one_by_one import OVERTAKEN, refresh_one, rolled_up
from tasks import alone as alone_module
from tasks import instances as instance_of_worker
from tasks.alone import alone
from tasks.claim_batch import claim_batch
from tasks.run_cycle import run_cycle
from tests import servers
from tests.integration.state import Pause, Redis, at_once, in_background, rows, wait_until, whole_redis

pytestmark = pytest.mark.usefixtures("database", "redis")

ROOT = Path(__file__).resolve().parents[2]
OLD = sorted(STRATEGIES.keys() - {"claim"})
AGES_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ODD = ["A", "P2P PREHEAT*?[x]", "ü-日本", "a/b\\c\"'", "x" * 64]


@pytest.fixture(autouse=True)
def one_instance_without_grace(settings: Settings) -> Iterator[None]:
    settings.REFRESH_RECONCILE_GRACE_SECONDS = 0
    settings.CORE_INSTANCE_ID, settings.CORE_INSTANCE_TOTAL = 0, 1
    yield
    points.visitors.clear()


@pytest.fixture(params=sorted(STRATEGIES))
def any_strategy(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.REFRESH_STRATEGY = request.param
    return str(request.param)


@pytest.fixture(params=OLD)
def old_strategy(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.REFRESH_STRATEGY = request.param
    return str(request.param)


def marked(count: int = 10, vendor: str = "REPLICATION") -> list[int]:
    """Executions whose tasks have succeeded, and which are marked and not refreshed."""
    ids = [one.pk for one in create_many(NewExecution(vendor, tasks=[NewTask()]) for _ in range(count))]
    report(
        [Report(pk, "Success", 1) for pk in Task.objects.filter(execution_id__in=ids).values_list("pk", flat=True)]
    )
    return ids


def statuses(ids: Sequence[int]) -> set[str]:
    return set(Execution.objects.filter(pk__in=ids).values_list("status", flat=True))


#: What a queue of claims keeps for good, or for a moment.
KEPT = ("nodes", "stamp", "wake", "cursor", "heat")


def rested(client: Redis) -> None:
    """As if the moment had passed for which the queue lets an execution rest that was just refreshed."""
    client.delete("cache:execution:refresh:heat")


def left_in_redis(client: Redis) -> set[str]:
    """Every key there is, but for what a queue of claims keeps for good, and for the ticks it has asked for."""
    names = {key.decode() for key in client.keys("*")}
    queue = {f"cache:execution:refresh:{name}" for name in KEPT}
    return {name for name in names - queue if not name.startswith(("_kombu.binding", "harbor_refresh.ticks"))}


# every design


def test_the_settings_and_the_code_name_the_same_designs(settings: Settings) -> None:
    assert set(settings.STRATEGIES) == set(STRATEGIES)
    for name in STRATEGIES:
        settings.REFRESH_STRATEGY = name
        assert strategy().name == name
        assert strategy().everywhere == (name != "claim")
        assert strategy() is strategy()


MIXTURES = [
    [*first, *second]
    for first in (["Success"], ["Error"], ["Stopped"], ["Running"], ["Pending"], ["Scheduled"])
    for second in ([], ["Success"], ["Error", "Stopped"], ["Stopped", "Success"], ["Running", "Error"])
]


def test_after_a_cycle_every_status_and_end_is_right_and_nothing_is_left_in_redis(
    any_strategy: str, redis: Redis
) -> None:
    made = create_many(
        NewExecution(vendor, tasks=[NewTask() for _ in mixture]) for mixture in MIXTURES for vendor in ODD[:2]
    )
    reports = [
        Report(pk, status, 1)
        for execution, mixture in zip(made, [one for one in MIXTURES for _ in range(2)], strict=True)
        for pk, status in zip(execution.tasks.values_list("pk", flat=True).order_by("pk"), mixture, strict=True)
    ]
    report([one for one in reports if one.status != "Pending"])
    mark(member(one.pk, one.vendor_type) for one in made)
    assert strategy().backlog() > 0
    outcome = strategy().cycle()
    assert outcome.succeeded >= len(made) - 2  # a stop is refreshed at once as well
    assert outcome.failed == {}
    assert strategy().backlog() == 0
    assert violations() == []
    assert left_in_redis(redis) == set()


def test_a_vendor_may_be_as_odd_as_it_likes(any_strategy: str, redis: Redis) -> None:
    ids = [pk for vendor in ODD for pk in marked(2, vendor)]
    assert strategy().backlog() == len(ids)
    strategy().cycle()
    assert statuses(ids) == {"Success"}
    assert left_in_redis(redis) == set()


def test_what_is_marked_is_not_lost_and_what_is_marked_nowhere_is(any_strategy: str) -> None:
    first, second = (member(pk, "REPLICATION") for pk in marked(2))
    assert strategy().lost([first, second, "999:X"]) == ["999:X"]
    strategy().cycle()
    assert strategy().lost([first, second]) == [first, second]


def test_to_mark_twice_is_to_mark_once(any_strategy: str) -> None:
    ids = marked(3)
    mark(member(pk, "REPLICATION") for pk in ids)
    assert strategy().backlog() == 3


def test_only_the_claiming_design_asks_for_a_tick_at_once(any_strategy: str) -> None:
    asked: list[str] = []

    def listen(**_: Any) -> None:
        asked.append("tick")

    signals.woken.connect(listen)
    try:
        marked(3)
    finally:
        signals.woken.disconnect(listen)
    assert asked == (["tick"] if any_strategy == "claim" else [])


def test_marks_that_cannot_be_sent_are_told_and_reconcile_finds_them(
    any_strategy: str, monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    def away(*_: Any) -> bool:
        raise QueueUnavailable("Redis: away")

    with monkeypatch.context() as patched:
        patched.setattr(type(strategy()), "mark", away)
        assert mark(["1:A"]) is False
    ids = marked(3)
    redis.flushall()
    assert (reconcile().marked, strategy().backlog()) == (3, 3)
    assert (reconcile().marked, reconcile().waiting) == (0, 3)
    strategy().cycle()
    assert statuses(ids) == {"Success"}


def test_an_execution_that_was_deleted_leaves_nothing_behind(any_strategy: str, redis: Redis) -> None:
    ids = marked(3)
    Task.objects.filter(execution_id=ids[1]).delete()
    Execution.objects.filter(pk=ids[1]).delete()
    outcome = strategy().cycle()
    assert outcome.failed == {}
    assert statuses(ids) == {"Success"}
    assert left_in_redis(redis) == set()


def test_an_execution_in_quarantine_is_left_alone(any_strategy: str, redis: Redis) -> None:
    one, other = marked(2)
    Quarantine.objects.create(execution_id=one, reason="a test", attempts=5)
    outcome = strategy().cycle()
    assert (outcome.succeeded, outcome.failed) == (1, {})
    assert (statuses([one]), statuses([other])) == ({"Running"}, {"Success"})
    assert left_in_redis(redis) == set()


def test_an_execution_without_tasks_stays_as_it_was_set_by_hand(any_strategy: str, redis: Redis) -> None:
    execution = create(NewExecution("GARBAGE_COLLECTION"))
    before = rows(Execution)
    mark([member(execution.pk, "GARBAGE_COLLECTION")])
    strategy().cycle()
    assert (rows(Execution), StatusChange.objects.count()) == (before, 0)
    assert left_in_redis(redis) == set()


def test_two_nodes_at_once_leave_every_status_right(any_strategy: str, redis: Redis) -> None:
    ids = marked(60)
    outcomes = at_once(strategy().cycle, strategy().cycle, strategy().cycle)
    strategy().cycle()  # one that was overtaken five times stays marked
    assert sum(one.succeeded for one in outcomes) >= len(ids)
    assert violations() == []
    assert left_in_redis(redis) == set()


def test_a_mark_that_comes_while_its_execution_waits_in_a_cycle_is_not_forgotten(
    any_strategy: str, redis: Redis
) -> None:
    """Both executions are found by the same cycle; the second changes before its turn."""
    ids = marked(2)
    seen: list[int] = []

    def change(point: str, execution_ids: Sequence[int]) -> None:
        if point in ("one", "claimed") and not seen:
            seen.extend(execution_ids)
            others = Task.objects.filter(execution_id__in=ids).exclude(execution_id=execution_ids[0])
            report([Report(task.pk, "Error", 2) for task in others])

    points.visitors.append(change)
    strategy().cycle()
    rested(redis)
    strategy().cycle()
    assert violations() == []


def test_a_database_that_goes_away_ends_the_cycle_and_what_was_not_done_stays_marked(
    any_strategy: str, monkeypatch: pytest.MonkeyPatch, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ids = marked(20)
    true = connection.settings_dict["NAME"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "there_is_no_such_database")
    with caplog.at_level(logging.WARNING, "harbor_refresh"):
        outcome = strategy().cycle()
    assert (outcome.succeeded, strategy().backlog()) == (0, 20)
    assert "The database is away, 20 executions wait for it" in caplog.text
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", true)
    redis.delete("cache:execution:refresh:pause")  # of the claiming design
    strategy().cycle()
    assert statuses(ids) == {"Success"}


def test_the_invariants_know_what_waits_in_any_design(any_strategy: str) -> None:
    marked(3)
    assert [str(one) for one in violations() if one.name == "K2"] == ["K2: 3 executions wait in the queue"]


def test_stats_name_the_design_and_count_its_backlog(
    any_strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    marked(3)
    call_command("refresh_queue", "stats", "--json")
    data = json.loads(capsys.readouterr().out)
    assert (data["strategy"], data["backlog"]) == (any_strategy, 3)
    call_command("refresh_queue", "stats")
    assert (f"The strategy is {any_strategy}." in capsys.readouterr().out) == (any_strategy != "claim")


# the refresh of the original


@pytest.mark.parametrize("name", Status.values)
def test_one_status_alone_rolls_up_as_the_view_does(name: str) -> None:
    assert rolled_up({name: 2}) == ("Running" if not Status(name).is_final else name)
    assert rolled_up({name: 1, "Running": 1}) == "Running"
    assert rolled_up({"Succeed": 3}) == "Success"


def test_the_original_writes_a_revision_and_its_history_whether_anything_differs_or_not() -> None:
    (pk,) = marked(1)
    for revision in (1, 2, 3):
        assert refresh_one(pk).changed == 1
        assert Execution.objects.get(pk=pk).revision == revision
    changes = StatusChange.objects.filter(execution_id=pk).order_by("revision")
    assert [(one.revision, one.from_status, one.to_status) for one in changes] == [
        (1, "Running", "Success"),
        (2, "Success", "Success"),
        (3, "Success", "Success"),
    ]


def test_the_original_takes_four_statements_a_final_execution_and_no_transaction() -> None:
    (pk,) = marked(1)
    with CaptureQueriesContext(connection) as final:
        refresh_one(pk)
    words = [query["sql"].rpartition("\n--")[2].partition("\n")[2].split()[0] for query in final]
    assert words == ["SELECT", "SELECT", "WITH", "UPDATE"]
    report([Report(task.pk, "Running", 2) for task in Task.objects.filter(execution_id=pk)])
    with CaptureQueriesContext(connection) as running:  # its end stays empty
        refresh_one(pk)
    assert len(running) == 3


def test_of_two_who_read_the_same_revision_the_later_to_write_reads_again() -> None:
    """The one that waits has counted one Error less than is true by now."""
    execution = create(NewExecution("REPLICATION", tasks=[NewTask(), NewTask()]))
    first, second = execution.tasks.order_by("pk")
    report([Report(first.pk, "Success", 1)])
    with Pause("counted") as pause, in_background(lambda: refresh_one(execution.pk)) as outcome:
        assert pause.reached.wait(20)
        report([Report(second.pk, "Error", 1)])
        refresh_one(execution.pk)
        pause.go_on.set()
        assert outcome().succeeded == 1
    execution.refresh_from_db()
    assert execution.status == "Error"
    assert [one for one in violations() if one.name != "K2"] == []


class Killed(BaseException):
    """Stands for a process that ends here."""


def ended_long_ago() -> Execution:
    """An execution whose true end is not the moment of its refresh."""
    (pk,) = marked(1)
    Task.objects.filter(execution_id=pk).update(end_time=AGES_AGO)
    return Execution.objects.get(pk=pk)


def killed_at_its_write(pk: int) -> None:
    def die(point: str, _: Sequence[int]) -> None:
        if point == "written":
            raise Killed

    points.visitors.append(die)
    with pytest.raises(Killed):
        refresh_one(pk)
    points.visitors.remove(die)


def test_one_that_dies_before_its_last_statement_leaves_the_end_that_another_has_corrected() -> None:
    execution = ended_long_ago()
    refresh_one(execution.pk)
    killed_at_its_write(execution.pk)
    execution.refresh_from_db()
    assert (execution.revision, execution.end_time) == (2, AGES_AGO)


def test_one_that_dies_before_its_last_statement_leaves_it_to_another_that_has_written_before() -> None:
    execution = ended_long_ago()
    with Pause("written") as pause, in_background(lambda: refresh_one(execution.pk)) as outcome:
        assert pause.reached.wait(20)
        killed_at_its_write(execution.pk)
        pause.go_on.set()
        assert outcome().succeeded == 1
    execution.refresh_from_db()
    assert (execution.revision, execution.end_time) == (2, AGES_AGO)


def test_one_that_is_overtaken_five_times_fails_with_a_reason() -> None:
    (pk,) = marked(1)
    inside = threading.local()

    def overtake(point: str, execution_ids: Sequence[int]) -> None:
        if point == "counted" and not getattr(inside, "it", False):
            inside.it = True
            refresh_one(pk)
            inside.it = False

    points.visitors.append(overtake)
    assert refresh_one(pk).failed == {pk: OVERTAKEN}
    assert Execution.objects.get(pk=pk).revision == 5


def test_a_row_that_the_database_refuses_fails_alone_and_stays_marked(old_strategy: str) -> None:
    ids = marked(5)
    refuse(ids[2])
    outcome = strategy().cycle()
    assert (outcome.succeeded, list(outcome.failed)) == (4, [ids[2]])
    assert "refused by a test" in outcome.failed[ids[2]]
    assert strategy().backlog() == 1


def refuse(pk: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused by a test'; END $$"""
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON execution FOR EACH ROW WHEN (OLD.id = {pk}) "
            "EXECUTE FUNCTION refuse()"
        )


# scan


def test_scan_marks_with_the_keys_of_the_older_release(settings: Settings, redis: Redis) -> None:
    settings.REFRESH_STRATEGY = "scan"
    (pk,) = marked(1)
    assert redis.keys("*") == [f"execution:id:{pk}:vendor:REPLICATION:status_outdate".encode()]


def test_scan_reads_ten_keys_a_step_as_the_original_does(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "scan"
    assert Scan.PAGE == 10
    marked(300)
    client = connect(servers.redis.url, 2, tries=1)
    client.config_resetstat()
    assert len(Scan().found()) == 300
    steps = client.info("commandstats")["cmdstat_scan"]["calls"]
    client.close()
    assert steps >= 15


def test_keys_that_only_look_like_marks_are_told_and_touched_by_nobody(
    settings: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REFRESH_STRATEGY = "scan"
    strange = {
        b"execution:id:none:vendor:X:status_outdate",
        b"execution:id:0:vendor:X:status_outdate",
        b"execution:id:1:vendor:a:b:status_outdate",
        b"execution:id:1:vendor::status_outdate",
        b"execution:id:1:vendor:\xff:status_outdate",
    }
    others = {b"execution:id:1:vendor:X:status_outdated", b"execution:id:1", b"task:id:1:vendor:X:status_outdate"}
    for key in strange | others:
        redis.set(key, "")
    (pk,) = marked(1)
    strategy().cycle()
    assert statuses([pk]) == {"Success"}
    assert set(redis.keys("*")) == strange | others
    assert caplog.text.count("a member that cannot be read") == len(strange)
    assert "more members that cannot be read" not in caplog.text
    assert strategy().backlog() == 0


def test_every_instance_of_scan_does_all_of_the_work(settings: Settings) -> None:
    """The flaw, shown: what each found at the beginning it refreshes, whoever has done it meanwhile."""
    settings.REFRESH_STRATEGY = "scan"
    ids = marked(20)
    with Pause("one") as pause, in_background(strategy().cycle) as first:
        assert pause.reached.wait(20)
        second = strategy().cycle()
        pause.go_on.set()
        assert (first().succeeded, second.succeeded) == (20, 20)
    assert set(Execution.objects.values_list("revision", flat=True)) == {2}
    assert statuses(ids) == {"Success"}


# lock


@pytest.fixture
def locking(settings: Settings) -> Settings:
    settings.REFRESH_STRATEGY = "lock"
    settings.REFRESH_NODE_TTL_SECONDS = 0.6
    settings.REFRESH_HEARTBEAT_SECONDS = 0.1
    settings.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 20
    return settings


LOCK = "cache:execution:refresh:lock"


def test_while_one_instance_works_a_cycle_the_others_wait_and_then_find_nothing(locking: Settings) -> None:
    ids = marked(20)
    with Pause("one") as pause, in_background(strategy().cycle) as first:
        assert pause.reached.wait(20)
        with in_background(strategy().cycle) as second:
            time.sleep(0.3)
            assert set(Execution.objects.values_list("revision", flat=True)) == {0}
            pause.go_on.set()
            assert (first().succeeded, second().succeeded) == (20, 0)
    assert set(Execution.objects.filter(pk__in=ids).values_list("revision", flat=True)) == {1}


def test_the_lock_is_renewed_for_as_long_as_the_cycle_runs(locking: Settings, redis: Redis) -> None:
    marked(2)
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        assert pause.reached.wait(20)
        token = redis.get(LOCK)
        for _ in range(15):  # three times its life
            time.sleep(0.12)
            assert redis.get(LOCK) == token is not None
            assert 0 < redis.pttl(LOCK) <= 600
        pause.go_on.set()
        assert outcome().succeeded == 2
    assert redis.get(LOCK) is None


def test_who_holds_a_lock_that_is_anothers_by_now_stops_at_the_next_execution_and_frees_nothing(
    locking: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    marked(5)
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        assert pause.reached.wait(20)
        redis.set(LOCK, "another's")
        time.sleep(0.3)  # a renewal has been refused by now
        pause.go_on.set()
        assert outcome().succeeded == 1
    assert redis.get(LOCK) == b"another's"
    assert strategy().backlog() == 4
    assert "Lost the lock in the middle of a cycle" in caplog.text


def test_a_lock_that_could_not_be_renewed_in_time_is_lost_before_redis_says_so(
    locking: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is out of reach, or this process was stopped: no renewal, and the time that was granted is over."""
    marked(5)
    monkeypatch.setattr(cycle_lock.Hold, "renew_until", lambda *_: None)
    with Pause("one") as pause, in_background(strategy().cycle) as outcome:
        assert pause.reached.wait(20)
        time.sleep(0.7)
        pause.go_on.set()
        assert outcome().succeeded == 1
    assert strategy().backlog() == 4


def test_a_lock_whose_holder_died_is_free_after_its_time(locking: Settings, redis: Redis) -> None:
    marked(3)
    redis.set(LOCK, "a dead one's", px=400)
    assert strategy().cycle().succeeded == 3


def test_nobody_waits_for_the_lock_longer_than_an_interval(locking: Settings, redis: Redis) -> None:
    locking.EXECUTION_STATUS_REFRESH_INTERVAL_SECONDS = 0.3
    marked(3)
    redis.set(LOCK, "somebody's")
    began = time.monotonic()
    assert strategy().cycle().succeeded == 0
    assert 0.1 < time.monotonic() - began < 5
    assert redis.get(LOCK) == b"somebody's"


# hash


@pytest.fixture
def hashing(settings: Settings) -> Settings:
    settings.REFRESH_STRATEGY = "hash"
    settings.REFRESH_NODE_TTL_SECONDS = 0.6
    settings.REFRESH_HEARTBEAT_SECONDS = 0.1
    settings.CORE_INSTANCE_TOTAL = 3
    return settings


def test_each_instance_refreshes_exactly_its_own(hashing: Settings, redis: Redis) -> None:
    ids = marked(30)
    for number in range(3):
        hashing.CORE_INSTANCE_ID = number
        own = [pk for pk in ids if pk % 3 == number]
        assert strategy().cycle().succeeded == len(own) > 0
        assert statuses(own) == {"Success"}
        assert set(Execution.objects.filter(status="Success").values_list("pk", flat=True)) == {
            pk for pk in ids if pk % 3 <= number
        }
    assert left_in_redis(redis) == set()


def test_members_that_nobody_can_read_are_dropped_from_the_set(
    hashing: Settings, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.sadd("cache:execution:refresh:queue:v2", "nonsense", b"1:\xff")
    for name in ("upstream", "hash"):
        hashing.REFRESH_STRATEGY = name
        strategy().cycle()
    assert left_in_redis(redis) == set()
    assert caplog.text.count("Dropped a member that cannot be read") == 2


@pytest.mark.parametrize(
    ("given", "host", "line"),
    [
        ((0, None), "core-1", "CORE_INSTANCE_TOTAL: got nothing, takes "),
        ((3, 3), "core-1", "CORE_INSTANCE_ID: got '3', takes a whole number from 0 to 2"),
        ((None, 3), "core", "CORE_INSTANCE_ID: got nothing, and the host name 'core' ends in no ordinal; takes "),
        ((None, 3), "core-3", "CORE_INSTANCE_ID: got '3' from the host name 'core-3', takes "),
    ],
)
def test_a_worker_without_a_possible_number_does_not_start_and_says_why_in_one_line(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch, given: tuple[int | None, int | None], host: str, line: str
) -> None:
    hashing.CORE_INSTANCE_ID, hashing.CORE_INSTANCE_TOTAL = given
    monkeypatch.setattr("socket.gethostname", lambda: host)
    with pytest.raises(SystemExit) as refused:
        instance_of_worker.refuse_without_a_number()
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)
    with pytest.raises(NoInstance):
        strategy().cycle()
    marked(1)  # who only marks needs no number


def test_a_number_comes_from_the_host_name_unless_it_is_given(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "harbor-core-2")
    assert this_instance() == Instance(0, 3)
    hashing.CORE_INSTANCE_ID = None
    assert this_instance() == Instance(2, 3)


def test_other_designs_ask_for_no_number(settings: Settings) -> None:
    settings.CORE_INSTANCE_ID = settings.CORE_INSTANCE_TOTAL = None
    for name in STRATEGIES.keys() - {"hash"}:
        settings.REFRESH_STRATEGY = name
        instance_of_worker.refuse_without_a_number()


def test_a_worker_whose_number_another_has_waits_and_refuses_with_both_their_names(
    hashing: Settings, redis: Redis
) -> None:
    beating = threading.Event()

    def beat() -> None:
        while not beating.wait(0.05):
            instances.announce(0, "the-other-node")

    instances.announce(0, "the-other-node")
    with in_background(beat):
        began = time.monotonic()
        with pytest.raises(SystemExit) as refused:
            instance_of_worker.refuse_without_a_number()
        waited = time.monotonic() - began
        beating.set()
    assert waited > 0.7
    line = str(refused.value)
    assert "CORE_INSTANCE_ID: got 0" in line
    assert "the-other-node" in line
    assert this_node.name in line
    assert "\n" not in line
    assert this_node.name not in str(whole_redis(redis)["instances"])


def test_a_worker_takes_the_number_of_one_that_was_killed_as_soon_as_that_is_silent(hashing: Settings) -> None:
    instances.announce(0, "a-dead-node")
    began = time.monotonic()
    instance_of_worker.refuse_without_a_number()
    assert 0.3 < time.monotonic() - began < 5
    assert instances.announced() == {0: [this_node.name]}


def test_of_two_that_want_one_number_at_the_same_moment_one_gets_it(hashing: Settings) -> None:
    seen = at_once(*(lambda name=name: instances.announce(1, name, yields=True) for name in ("a", "b", "c", "d")))
    assert len(instances.announced()[1]) == 1
    assert all(one[1] == seen[0][1] for one in seen)


def test_number_one_is_not_taken_by_number_eleven(hashing: Settings) -> None:
    instances.announce(11, "eleven")
    instances.announce(1, "one", yields=True)
    assert instances.announced() == {1: ["one"], 11: ["eleven"]}


def test_instances_that_fall_silent_are_forgotten_and_leave_no_key(hashing: Settings, redis: Redis) -> None:
    instances.announce(1, "b")
    redis.zadd("cache:execution:refresh:instances", {"2:from-a-clock-that-went-back": 9e15, "x:y": 9e15})
    assert instances.announce(0, "a") == {0: ["a"], 1: ["b"]}
    wait_until(lambda: instances.announce(0, "a") == {0: ["a"]}, "the silent one to be forgotten")
    wait_until(lambda: redis.keys("*") == [], "the key to expire")


def test_one_that_ends_cleanly_is_forgotten_at_once(hashing: Settings) -> None:
    hashing.REFRESH_NODE_TTL_SECONDS = 60
    instance_of_worker.refuse_without_a_number()
    instance_of_worker.start()
    wait_until(lambda: instances.announced() == {0: [this_node.name]}, "the announcement")
    instance_of_worker.stop()
    assert instances.announced() == {}


def test_a_sign_of_life_that_is_under_way_at_the_end_is_waited_for(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come after the withdrawal, and speak for a worker that is gone."""
    hashing.REFRESH_NODE_TTL_SECONDS = 60
    announce, under_way = instances.announce, threading.Event()

    def announce_slowly(*args: Any, **options: Any) -> Any:
        under_way.set()
        threading.Event().wait(0.3)
        return announce(*args, **options)

    monkeypatch.setattr(instances, "announce", announce_slowly)
    instance_of_worker.start()
    assert under_way.wait(10)
    instance_of_worker.stop()
    wait_until(lambda: all(one.name != "instance" for one in threading.enumerate()), "the thread to end")
    assert instances.announced() == {}


def test_a_worker_whose_redis_is_away_starts_all_the_same(
    hashing: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any, **__: Any) -> instances.Announced:
        raise QueueUnavailable("Redis: away")

    monkeypatch.setattr(instances, "announce", away)
    instance_of_worker.refuse_without_a_number()
    assert "cannot announce its CORE_INSTANCE_ID" in caplog.text


def test_numbers_that_are_doubled_or_missing_are_told_once_until_that_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = instance_of_worker.Told(3, patience=0)

    def lines(seen: instances.Announced) -> list[str]:
        caplog.clear()
        told.tell(seen)
        return [one.getMessage() for one in caplog.records]

    assert lines({0: ["a"], 1: ["b"], 2: ["c"]}) == []
    assert lines({0: ["a"], 2: ["c", "d"]}) == [
        "CORE_INSTANCE_ID 2 is announced by c, d: they do the same work",
        "Nobody announces CORE_INSTANCE_ID 1 of 3: their executions wait",
    ]
    assert lines({0: ["a"], 2: ["c", "d"]}) == []
    assert lines({0: ["a"], 1: ["b"], 2: ["c"]}) == []
    assert lines({0: ["a"], 1: ["b"]}) == ["Nobody announces CORE_INSTANCE_ID 2 of 3: their executions wait"]


def test_a_number_that_is_missing_is_given_the_time_of_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    told = instance_of_worker.Told(2, patience=60)
    told.tell({0: ["a"]})
    assert caplog.text == ""
    told._whole_at -= timedelta(seconds=61).total_seconds()
    told.tell({0: ["a"]})
    assert "Nobody announces CORE_INSTANCE_ID 1 of 2" in caplog.text


def test_stats_tell_who_is_which_instance_and_what_is_wrong_with_that(
    hashing: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    hashing.REFRESH_NODE_TTL_SECONDS = 60
    for number, node in ((0, "a"), (2, "b"), (2, "c")):
        instances.announce(number, node)
    call_command("refresh_queue", "stats", "--json")
    assert json.loads(capsys.readouterr().out)["instances"] == {
        "total": 3,
        "announced": {"0": ["a"], "2": ["b", "c"]},
        "doubled": [2],
        "missing": [1],
    }
    call_command("refresh_queue", "stats")
    shown = capsys.readouterr().out
    for line in (
        "Instance 2 of 3: b, c",
        "CORE_INSTANCE_ID 2 is announced twice: what it does is done twice.",
        "Nobody announces CORE_INSTANCE_ID 1: the executions that fall to it wait.",
    ):
        assert line in shown


# upstream

#: A node of its own that dies before it refreshes its third execution.
DIES = """
import os, django
django.setup()
from executions import points
from executions.strategies import strategy
reached = []
def die(point, ids):
    reached.append(ids) if point == "one" else None
    len(reached) < 3 or os._exit(9)
points.visitors.append(die)
strategy().cycle()
"""


def die_in_a_cycle(name: str) -> None:
    env = {
        **os.environ,
        "DATABASE_URL": servers.postgres.url_for(connection.settings_dict["NAME"]),
        "REFRESH_STRATEGY": name,
        "DJANGO_SETTINGS_MODULE": "settings.test",
        "CORE_INSTANCE_ID": "0",
        "CORE_INSTANCE_TOTAL": "1",
    }
    done = subprocess.run([sys.executable, "-c", DIES], cwd=ROOT, env=env, check=False, timeout=60)
    assert done.returncode == 9


def test_upstream_loses_what_it_popped_when_it_dies_and_reconcile_heals_it(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    ids = marked(150)
    die_in_a_cycle("upstream")
    assert strategy().backlog() == 50
    strategy().cycle()
    assert Execution.objects.filter(pk__in=ids, status="Running").count() == 98
    assert reconcile().marked == 98
    strategy().cycle()
    assert statuses(ids) == {"Success"}


@pytest.mark.parametrize("name", ["scan", "lock", "hash"])
def test_a_design_that_lets_go_of_a_mark_last_loses_nothing_when_it_dies(
    name: str, settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = name
    ids = marked(20)
    die_in_a_cycle(name)
    assert strategy().backlog() == 18
    redis.delete(LOCK)  # it would be free after the ttl of the one that died
    strategy().cycle()
    assert statuses(ids) == {"Success"}


def test_upstream_pops_a_hundred_at_a_time(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    marked(250)
    backlogs: list[int] = []

    def look(point: str, _: Sequence[int]) -> None:
        if point == "one":
            backlogs.append(plain_set.size())

    points.visitors.append(look)
    strategy().cycle()
    assert sorted(set(backlogs), reverse=True) == [150, 50, 0]
    assert len(backlogs) == 250


def test_upstream_ends_a_cycle_that_only_meets_what_has_failed_in_it(settings: Settings) -> None:
    settings.REFRESH_STRATEGY = "upstream"
    ids = marked(3)
    refuse(ids[0])
    tried: list[int] = []
    points.visitors.append(lambda point, at: tried.extend(at) if point == "one" else None)
    assert strategy().cycle().succeeded == 2
    assert tried.count(ids[0]) == 2
    assert strategy().backlog() == 1


# claim


def test_a_node_without_celery_drains_the_queue_and_ends_at_what_others_have_locked(
    settings: Settings, redis: Redis
) -> None:
    settings.REFRESH_STRATEGY = "claim"
    ids = marked(40)
    with psycopg.connect(servers.postgres.url_for(connection.settings_dict["NAME"])) as other:
        other.execute("SELECT FROM execution WHERE id = %s FOR UPDATE", [ids[0]])
        outcome = strategy().cycle()
    assert outcome.succeeded >= 39
    assert strategy().backlog() == 1
    rested(redis)
    assert strategy().cycle().succeeded == 1
    assert statuses(ids) == {"Success"}


# ticks and cycles


def test_a_tick_of_the_claiming_design_sends_nothing_to_everybody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr("tasks.claim_batch.broadcast", lambda: sent.append("cycle"))
    for name in STRATEGIES:
        settings.REFRESH_STRATEGY = name
        claim_batch()
    assert len(sent) == len(OLD)


def test_a_worker_drops_a_tick_while_it_runs_a_cycle(old_strategy: str) -> None:
    marked(3)
    with Pause("one") as pause, in_background(run_cycle) as first:
        assert pause.reached.wait(20)
        assert run_cycle() == {"dropped": 1}
        pause.go_on.set()
        assert first() == {"succeeded": 3, "failed": 0}
    assert run_cycle() == {"succeeded": 0, "failed": 0}


@pytest.fixture
def shared_file() -> Iterator[Callable[[], int]]:
    """The file of a worker's main process; the value begins a cycle in a child of it that then dies."""
    alone_module.open_file()

    def child() -> int:
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with alone() as free:
                    os.write(tell, b"1" if free else b"0")
                    time.sleep(60)
            finally:
                os._exit(0)  # it must not go on as a second pytest
        os.close(tell)
        assert os.read(ready, 1) == b"1"
        os.close(ready)
        return pid

    yield child
    assert alone_module._file is not None
    alone_module._file.close()
    alone_module._file = None


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_processes_of_one_worker_run_one_cycle_at_a_time_and_a_killed_one_frees_it(
    shared_file: Callable[[], int],
) -> None:
    pid = shared_file()
    with alone() as free:
        assert not free
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    with alone() as free:
        assert free


def test_the_keys_of_marks_are_read_as_they_are_written() -> None:
    for vendor in ODD:
        assert outdated_keys.readable(outdated_keys.key(f"7:{vendor}").encode()) == f"7:{vendor}"


def test_the_settings_carry_the_instance() -> None:
    assert (refresh_settings().instance_id, refresh_settings().instance_total) == (0, 1)
