"""The simulation of docs/scaling.md: it meets the measured points, a wrong cost is noticed, and the page has its
tables."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pictures import scaling
from benchmarks.scaling import __main__ as program
from benchmarks.scaling import page
from benchmarks.scaling.costs import Costs, by_size
from benchmarks.scaling.drain import drain
from benchmarks.scaling.fleet import Fleet, one_machine
from benchmarks.scaling.limits import limits
from benchmarks.scaling.measured import POINTS, Point
from benchmarks.scaling.stations import Clock, Cores, Line, Thread
from tests import pages

PAGE = Path(__file__).resolve().parents[2] / "docs/scaling.md"
PROGRAM = "python -m benchmarks.scaling"
BENCHMARKS = PAGE.with_name("benchmarks.md").read_text(encoding="utf-8")
LARGEST_QUICK = 10_000_000


def in_page(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n<!-- end of {name} -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert found, f"docs/scaling.md has no table {name}"
    return found[1]


def rows(table: str) -> list[str]:
    return table.splitlines()[2:]


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_measured_point_is_met(point: Point) -> None:
    assert point.is_met(), f"{point.what}: measured {point.measured}, the model says {point.modelled()}"


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_measured_point_is_a_figure_of_the_benchmarks(point: Point) -> None:
    section = re.search(rf"^## {point.section}\n(.*?)(?=^## )", BENCHMARKS, re.MULTILINE | re.DOTALL)
    assert section
    assert f"| {point.measured:,} |" in section[1]


def scaled(costs: Costs, field: str, times: float) -> Costs:
    value: Any = getattr(costs, field)
    changed = {size: one * times for size, one in value.items()} if isinstance(value, dict) else value * times
    return replace(costs, **{field: changed})


@pytest.mark.parametrize("times", [0.5, 2])
@pytest.mark.parametrize(
    "field",
    [
        *("scripts", "postgres", "work_python", "first_milliseconds"),
        *("chunk_statements", "page_commands"),
    ],
)
def test_a_cost_that_is_wrong_by_half_misses_a_measured_point(field: str, times: float) -> None:
    wrong = scaled(Costs(), field, times)
    assert not all(point.is_met(wrong) for point in POINTS if point.waiting <= 300_000)


def test_a_cost_grows_evenly_with_each_tenfold_and_goes_on_so_above_the_largest_size() -> None:
    measured = {1_000: 10.0, 10_000: 20.0, 100_000: 50.0}
    sizes = (1, 1_000, 10_000, 31_623, 100_000, 10_000_000)
    assert [round(by_size(measured, size), 3) for size in sizes] == [10, 10, 20, 35, 50, 110]


@pytest.mark.parametrize(
    "fleet",
    [
        *(Fleet(workers=1), Fleet(workers=10), Fleet(workers=50, shards=4, has_own_broker=True)),
        *(Fleet(workers=20, shards=3, databases=2), one_machine(2)),
    ],
    ids=["one", "ten", "four queues", "three queues, two databases", "one machine"],
)
@pytest.mark.parametrize("executions", [1, 999, 100_000, 3_000_001])
def test_no_part_carries_more_than_its_limit_and_all_is_done_within_the_room(
    fleet: Fleet, executions: int
) -> None:
    found = drain(fleet, executions)
    assert found.seconds
    assert found.most_in_flight <= fleet.nodes * fleet.depth * fleet.chunk * fleet.shards
    assert all(0 <= share <= 1 for share in found.busy.values())
    if not fleet.shared_cores:
        # each service varies by up to a fifth, so a short run may be faster than the mean
        assert found.per_second <= 1.2 * min(limits(fleet, executions).values())


def test_the_same_seed_gives_the_same_run_and_another_seed_nearly_the_same() -> None:
    first, again, other = (drain(Fleet(workers=3), 2_000_000, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first.seconds == pytest.approx(other.seconds, rel=0.02)


def test_gossip_of_a_thousand_workers_leaves_redis_no_time() -> None:
    found = drain(Fleet(workers=1_000, has_gossip=True), 1_000_000)
    assert (found.seconds, found.per_second, found.limit) == (None, 0, "Redis")
    assert page.time(found) == "never"


@pytest.mark.parametrize(
    ("better", "times"),
    [
        (replace(Fleet(workers=100, shards=1), shards=4), 3),
        (replace(Fleet(workers=100, shards=1), has_own_broker=True), 1),
        (replace(Fleet(workers=100, shards=1), has_ranges=True), 0.99),
    ],
    ids=["four queues", "a broker of its own", "neighbouring ids"],
)
def test_a_remedy_helps(better: Fleet, times: float) -> None:
    assert drain(better, 5_000_000).per_second >= times * drain(Fleet(workers=100), 5_000_000).per_second


def test_what_does_not_fit_in_memory_is_read_and_less_of_it_if_neighbours_come_together() -> None:
    small = Fleet(workers=10, database_memory=10**9)
    slow = drain(small, 20_000_000)
    assert slow.limit == "PostgreSQL's reads"
    assert drain(replace(small, has_ranges=True), 20_000_000).per_second > 2 * slow.per_second


# -- the clock and the stations


def ends(serve: Callable[[Clock], dict[str, float]]) -> dict[str, float]:
    clock = Clock()
    found = serve(clock)
    clock.run()
    return found


def test_a_line_serves_in_order_and_two_at_a_time() -> None:
    def serve(clock: Clock) -> dict[str, float]:
        line, found = Line(clock, 2), dict[str, float]()
        for name, seconds in (("a", 3), ("b", 1), ("c", 1), ("d", 5)):
            line.serve(seconds, lambda name=name: found.update({name: clock.now}))  # type: ignore[misc]
        return found

    assert ends(serve) == {"a": 3, "b": 1, "c": 2, "d": 7}


def test_cores_take_turns_so_a_short_request_does_not_wait_for_a_long_one() -> None:
    def serve(clock: Clock) -> dict[str, float]:
        cores, found = Cores(clock, 1, quantum=1), dict[str, float]()
        for name, seconds in (("long", 5), ("short", 1)):
            cores.serve(seconds, lambda name=name: found.update({name: clock.now}))  # type: ignore[misc]
        return found

    assert ends(serve) == {"short": 2, "long": 6}


def test_a_thread_uses_one_core_at_a_time_and_goes_first() -> None:
    def serve(clock: Clock) -> dict[str, float]:
        cores, found = Cores(clock, 2, quantum=1), dict[str, float]()
        thread = Thread(cores)
        for name in ("x", "y"):
            cores.serve(4, lambda name=name: found.update({name: clock.now}))  # type: ignore[misc]
            thread.serve(1, lambda name=name: found.update({f"thread {name}": clock.now}))  # type: ignore[misc]
        return found

    assert ends(serve) == {"thread x": 1, "thread y": 2, "x": 5, "y": 5}


# -- the page


def test_the_page_has_the_tables_that_the_program_prints() -> None:
    """`python -m benchmarks.scaling --write docs/scaling.md` writes them."""
    assert in_page("points") == page.points()
    assert in_page("limits") == page.limits_table()
    assert in_page("memory") == page.memory_table()
    quick = rows(page.grid_table(page.SEED, [size for size in page.SIZES if size <= LARGEST_QUICK]))
    assert rows(in_page("grid"))[: len(quick)] == quick


@pytest.mark.slow
def test_the_page_has_the_tables_of_the_largest_simulations_too() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page.replaced(text, page.tables()) == text


def test_the_program_writes_the_page_and_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the page says to, with one small simulation; the tables are compared above."""
    small = [(1, drain(Fleet(workers=1), 10_000)), (10, drain(Fleet(workers=10), 10_000))]
    monkeypatch.setattr(page, "tables", lambda seed: {"grid": f"of seed {seed}\n"})
    monkeypatch.setattr(page, "grid", lambda seed: small)
    target = tmp_path / "page.md"
    target.write_text("before\n<!-- grid -->\nold\n<!-- end of grid -->\n", encoding="utf-8")
    (command,) = (one for one in pages.spans(PAGE.read_text("utf-8")) if one.startswith(f"{PROGRAM} --"))
    places = {"docs/scaling.md": str(target), "docs/images": str(tmp_path)}
    words = [places.pop(word, word) for word in command.removeprefix(PROGRAM).split()]
    assert not places
    assert program.main(["--seed", "7", *words]) == 0
    assert target.read_text(encoding="utf-8") == "before\n<!-- grid -->\n\nof seed 7\n\n<!-- end of grid -->\n"
    assert (tmp_path / "scaling.svg").is_file()
    assert program.main([]) == 0
    assert capsys.readouterr().out == "grid\n\nof seed 1\n"


def test_every_table_has_its_place_and_is_replaced() -> None:
    text = "".join(f"<!-- {name} -->\nold\n<!-- end of {name} -->\n" for name in ("a", "b"))
    assert page.replaced(text, {"b": "new\\1\n"}) == (
        "<!-- a -->\nold\n<!-- end of a -->\n<!-- b -->\n\nnew\\1\n\n<!-- end of b -->\n"
    )


def test_the_picture_has_a_line_for_each_backlog(tmp_path: Path) -> None:
    grid = page.grid(page.SEED, [1_000_000, 10_000_000])
    drawn = scaling.draw(grid, tmp_path)
    text = drawn.read_text(encoding="utf-8")
    assert drawn.name == "scaling.svg"
    assert "<!-- 1,000,000 -->" in text
    assert "<!-- 10,000,000 -->" in text
