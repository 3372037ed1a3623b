"""The arithmetic of the bench, and the environment and URLs it makes."""

import json
import os
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks import stale_executions
from benchmarks.existing_servers import with_options
from benchmarks.experiments import backlog
from benchmarks.figures import duplicates, split_range
from benchmarks.meters import by_kind
from benchmarks.percentiles import percentile
from benchmarks.rows import Row, RowFile
from benchmarks.servers import environment


@pytest.mark.parametrize(("count", "parts"), [(10, 1), (10, 3), (300, 2), (1_000_000, 7), (2, 5)])
def test_ranges_are_even_and_complete(count: int, parts: int) -> None:
    ranges = split_range(count, parts)
    assert [number for first, last in ranges for number in range(first, last + 1)] == list(range(1, count + 1))
    sizes = [last - first + 1 for first, last in ranges]
    assert max(sizes) - min(sizes) <= 1


def test_duplicates_are_the_refreshes_beyond_the_first_of_each_execution() -> None:
    row = Row("scan", 2, 1_000)
    duplicates(row, refreshes=1_900, done=1_000)
    assert row.duplicates == 900
    assert row.extra["duplicates_share"] == pytest.approx(0.4737)


def test_commands_are_counted_between_two_answers_of_info_without_the_commands_of_the_counter() -> None:
    before = {"cmdstat_sadd": {"calls": 10}, "cmdstat_info": {"calls": 3}, "used_cpu_user": 1.0}
    now = {
        "cmdstat_sadd": {"calls": 15},
        "cmdstat_scard": {"calls": 9},
        "cmdstat_del": {"calls": 2},
        "cmdstat_info": {"calls": 4},
    }
    own = Counter({"scard": 9})
    assert by_kind(before, now, own) == {"sadd": 5, "del": 2}


def test_the_session_parameters_are_replaced_and_the_rest_of_the_url_stays() -> None:
    url = "postgresql://me:p%40ss@db.example:5433/harbor?sslmode=require&options=-c%20lock_timeout%3D9s"
    own = conninfo_to_dict(with_options(url, "-c lock_timeout=5s -c search_path=bench"))
    assert own == {
        "user": "me",
        "password": "p@ss",
        "host": "db.example",
        "port": "5433",
        "dbname": "harbor",
        "sslmode": "require",
        "options": "-c lock_timeout=5s -c search_path=bench",
    }


def test_the_callers_settings_do_not_reach_the_measured_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REFRESH_JOB_HOURS", "CELERY_BROKER_URL", "CORE_INSTANCE_ID", "LOG_LEVEL", "DATABASE_URL_FILE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MINE", "stays")
    made = environment("postgresql://a/b", "redis://c/1")
    assert made["MINE"] == "stays"
    assert (made["DATABASE_URL"], made["REDIS_URL"]) == ("postgresql://a/b", "redis://c/1")
    assert not {
        "REFRESH_JOB_HOURS",
        "CELERY_BROKER_URL",
        "CORE_INSTANCE_ID",
        "LOG_LEVEL",
        "DATABASE_URL_FILE",
    } & set(made)


def test_the_file_holds_every_row_as_soon_as_it_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("of an earlier run")
    file = RowFile(path)
    assert json.loads(path.read_text()) == []
    for count in (1, 2):
        file.add(Row("scan", count, 10, extra={"refreshes": 3}).as_json())
        rows = json.loads(path.read_text())
        assert [row["nodes"] for row in rows] == list(range(1, count + 1))
        assert rows[-1]["refreshes"] == 3
    assert os.listdir(tmp_path) == ["rows.json"]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([7.0], 0.5, 7.0),
        ([1, 2, 3, 4], 0.5, 2),
        ([4, 3, 2, 1], 0.51, 3),
        (list(range(1, 101)), 0.99, 99),
        (list(range(1, 101)), 1.0, 100),
        (list(range(1, 101)), 0.07, 7),  # 0.07 x 100 is a little more than 7 for a computer
        ([], 0.5, None),
    ],
)
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected


def test_a_strategy_that_exceeded_the_budget_is_not_tried_with_a_larger_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(name: str, _: Any, given: Namespace, __: Any) -> Row:
        cut = name == "scan" and given.executions >= 100
        return Row(name, 2, given.executions, seconds=1.0, executions_per_second=50.0, cut=cut)

    class Stub:
        def __getattr__(self, _: str) -> Any:
            return lambda *_: self

        def __enter__(self) -> Any:
            return lambda done: None

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(stale_executions, "fill", lambda size, show: None)
    monkeypatch.setattr(backlog, "measure_nodes", measure)
    given = Namespace(sizes=[10, 100, 1_000], strategies=["scan", "claim"], nodes=2)
    given.tasks_per_execution, given.budget = 4, 1.0
    rows: Any = backlog.run(Stub(), given, Stub())  # type: ignore[arg-type]
    told = [(row.strategy, row.executions, row.cut, row.extra["not_tried"]) for row in rows]
    assert told == [
        ("scan", 10, False, None),
        ("claim", 10, False, None),
        ("scan", 100, True, None),
        ("claim", 100, False, None),
        ("scan", 1_000, False, "cut at 100"),
        ("claim", 1_000, False, None),
    ]
    assert {row.extra["us_each"] for row in rows} == {20_000.0, None}
