"""The counters: right to the unit, whatever happens to the transactions that add to them, and never waited for."""

from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from harbor_refresh.executions.models import Counter
from harbor_refresh.executions.news import counters
from harbor_refresh.executions.news.counters import REPORT_TO_TRUE_SECONDS, SUM, Histogram, add, add_later, totals
from tests import servers
from tests.integration.concurrency import at_once, transaction_held_open

pytestmark = pytest.mark.usefixtures("database")

CHANGED = ("refreshes", "result=changed")
FAILED = ("refreshes", "result=failed")


def test_what_is_added_is_summed_up_and_nothing_else_is_written() -> None:
    add({CHANGED: 3, FAILED: 1})
    add({CHANGED: 4, ("deliveries", "result=dead"): 0})
    add({})
    assert totals() == {CHANGED: 7, FAILED: 1}


def test_a_count_is_rolled_back_with_the_change_it_counts() -> None:
    add({CHANGED: 1})
    with transaction.atomic():
        add({CHANGED: 10, FAILED: 1})
        transaction.set_rollback(True)
    assert totals() == {CHANGED: 1}


def test_a_flood_is_counted_by_one_statement_a_second(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = 1_000.0
    monkeypatch.setattr(counters.time, "monotonic", lambda: now)
    with django_assert_num_queries(1):
        for _ in range(5):
            add_later({FAILED: 1})
    assert totals() == {FAILED: 1}
    now += 1
    with transaction.atomic():
        add_later({FAILED: 1})
        transaction.set_rollback(True)
    assert totals() == {FAILED: 1}, "a transaction that is rolled back adds nothing"
    now += 1
    add_later({FAILED: 1})
    assert totals() == {FAILED: 7}


def test_no_transaction_waits_for_another_one_that_has_counted() -> None:
    def count() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '1ms'")
            add({CHANGED: 1, FAILED: 1})

    # each of these backends holds a shard, and one of the two counts in the other order
    with transaction_held_open(lambda: add({CHANGED: 1, FAILED: 1})) as commit_one:
        with transaction_held_open(lambda: add({FAILED: 1, CHANGED: 1})) as commit_other:
            at_once(*[count] * 4)
            assert totals() == {CHANGED: 4, FAILED: 4}
            commit_other()
        commit_one()
    assert totals() == {CHANGED: 6, FAILED: 6}


def test_no_transaction_waits_even_if_every_shard_is_taken(database: str) -> None:
    add({CHANGED: 1})
    with psycopg.connect(servers.postgres.url_for(database)) as other:
        space = "'execution_counter'::regclass::oid::int"
        other.execute(f"SELECT pg_advisory_xact_lock({space}, shard) FROM generate_series(0, 31) AS shard")
        other.execute("SELECT FROM execution_counter FOR UPDATE")
        add({CHANGED: 1})
    assert totals() == {CHANGED: 2}
    assert sum(shard >= 32 for shard in Counter.objects.values_list("shard", flat=True)) == 1


def test_a_histogram_is_read_from_the_counters_of_its_buckets() -> None:
    counts = {"le=0.05": 3, "le=0.1": 1, "le=10": 1, "le=+Inf": 1}
    add({(REPORT_TO_TRUE_SECONDS, label): count for label, count in counts.items()})
    add({(REPORT_TO_TRUE_SECONDS, SUM): 4_007_101_000})
    found = Histogram.of(REPORT_TO_TRUE_SECONDS, totals())
    assert (found.count, found.sum) == (6, 4007.101)
    labels = counters.labels_of(REPORT_TO_TRUE_SECONDS)
    assert dict(zip(labels, found.buckets, strict=True)) == dict.fromkeys(labels, 0) | counts


def test_a_quantile_is_found_between_the_bounds_of_its_bucket() -> None:
    earlier = Histogram((1.0, 2.0), (1, 0, 0), 0.5)
    later = Histogram((1.0, 2.0), (1, 4, 1), 9.5)
    assert later.since(earlier) == Histogram((1.0, 2.0), (0, 4, 1), 9.0)
    assert later.since(earlier).quantile(0.4) == 1.5
    assert later.since(earlier).quantile(0.8) == 2.0
    assert later.since(earlier).quantile(0.99) == 2.0
    assert later.since(later).quantile(0.5) is None


@pytest.mark.parametrize("metric", counters.BOUNDS)
def test_the_function_that_counts_a_refresh_has_the_buckets_that_are_read(metric: str) -> None:
    beyond = [*counters.BOUNDS[metric], counters.BOUNDS[metric][-1] * 2]
    with connection.cursor() as cursor:
        for seconds in beyond:
            cursor.execute("SELECT count_execution_refresh(0, 1, %s, %s)", [seconds * 0.99, [seconds * 0.99]])
    assert Histogram.of(metric, totals()).buckets == (1,) * len(beyond)


def test_updates_of_a_counter_leave_its_table_small() -> None:
    for _ in range(500):
        add({CHANGED: 1})
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_table_size('execution_counter')")
        (size,) = cursor.fetchone()
    assert totals() == {CHANGED: 500}
    assert size < 200_000
