"""Percentiles, and the pictures and tables that are made of measured rows."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from benchmarks import plots, stale_executions
from benchmarks.command import Command
from benchmarks.errors import BenchError
from benchmarks.experiments import backlog
from benchmarks.percentiles import percentile
from benchmarks.pictures import canvas
from benchmarks.rows import Row

ABOUT = {
    "machine": {"cpu": "Some(R) CPU @ 2.40GHz", "cores": 2, "memory_bytes": 8 * 2**30},
    "versions": {"postgresql": "18.6", "valkey server": "9.1.2", "celery": "5.7.0"},
    "date": "2026-11-03T10:00:00+00:00",
}
COMMON = {"nodes": 5, "workers": 2, "concurrency": 2, "cut": False, "errors": 0, "tasks": 10_000}


def strategy(name: str, speed: float, **more: Any) -> dict[str, Any]:
    row = {"strategy": name, "executions_per_second": speed, "duplicates_share": 0.0, "lost": 0}
    return {"experiment": "strategies", **COMMON, **row, **more}


def fresh(rate: int, p50: float, p99: float, *, wake_up: bool) -> dict[str, Any]:
    row = {"rate": rate, "achieved": rate, "wake_up": wake_up, "interval": 5.0}
    return {"experiment": "freshness", **COMMON, **row, "p50": p50, "p99": p99}


def waiting(name: str, size: int, us: float | None, *, cut: bool = False) -> dict[str, Any]:
    return {"experiment": "backlog", **COMMON, "strategy": name, "executions": size, "us_each": us, "cut": cut}


ROWS: list[dict[str, Any]] = [
    strategy("scan", 140, duplicates_share=0.79, cut=True),
    strategy("upstream", 900, lost=100),
    strategy("claim", 31_000),
    strategy("limit", 40_000, lost=None, duplicates_share=None),
    waiting("scan", 1_000, 7_000),
    waiting("scan", 10_000, 9_000, cut=True),
    waiting("scan", 100_000, None),
    waiting("claim+celery", 1_000, 300),
    waiting("claim+celery", 100_000, 40),
    fresh(20, 0.02, 0.05, wake_up=True),
    fresh(50, 0.03, 0.09, wake_up=True),
    fresh(20, 2.5, 5.0, wake_up=False),
    *(
        {"experiment": "peers", **COMMON, "way": way, "jobs": 10_000, "killed": killed}
        | {"seconds": None if killed and lost else 40.0, "lost": lost if killed else 0}
        for way, lost in (("ours", 0), ("theirs", 12))
        for killed in (False, True)
    ),
]
ROWS = [row | {"about": ABOUT} for row in ROWS]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS))
    return path


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


@pytest.mark.slow
def test_every_experiment_with_rows_becomes_a_picture(tmp_path: Path) -> None:
    drawn = plots.draw(ROWS, tmp_path)
    assert [path.stem for path in drawn] == [f"bench-{name}" for name in plots.PICTURES]
    for path in drawn:
        assert path.suffix == ".svg"
        assert path.stat().st_size <= canvas.LARGEST_SVG
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - our own file
        assert root.tag.endswith("svg")
        assert len(list(root.iter())) > 100
        assert "fill: #ffffff" in path.read_text(encoding="utf-8"), "the servers is white on a dark page, too"


def test_the_command_draws_and_prints_tables(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command(Command(), "plot", str(file), "--into", str(tmp_path / "images"), "--markdown")
    told = capsys.readouterr()
    assert len(list((tmp_path / "images").iterdir())) == len(plots.PICTURES)
    assert "bench-freshness.svg" in told.err
    assert "### freshness" in told.out
    assert "| 20 | 20 | yes | 30 |" not in told.out
    assert "| reports/s | sent/s | wake-up |" in told.out
    assert "*2 cores of Some" in told.out


@pytest.mark.parametrize("text", ["{}", "[1]", "not JSON"])
def test_a_file_without_rows_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(BenchError, match=r"Takes files that bench has written with --json\."):
        plots.read([path])


@pytest.mark.parametrize("words", [["plot"], ["plot", "a.json"], ["jobs", "a.json"], ["strategies", "--markdown"]])
def test_a_plot_without_a_file_or_a_folder_is_misuse_and_so_is_a_file_for_a_measurement(words: list[str]) -> None:
    with pytest.raises(CommandError) as told:
        call_command(Command(), *words)
    assert told.value.returncode == 2
