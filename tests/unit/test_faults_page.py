"""docs/faults.md names existing tests for each failure of other systems."""

from pathlib import Path

import pytest

from tests.unit.named_tests import Named, named_in, refuse_missing

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/faults.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
NAMED = named_in(PAGE)


@pytest.mark.parametrize("named", NAMED, ids="::".join)
def test_every_test_that_is_named_exists(named: Named) -> None:
    refuse_missing(named)


def test_every_row_has_a_test_and_only_tests_are_quoted() -> None:
    ways = [row for row in ROWS if not row.startswith("| what went wrong")]
    assert len(ways) >= 20
    for row in ways:
        assert len(row.strip("| ").split(" | ")) == 3, row
        assert ".py::test_" in row.split(" | ")[2], row
    assert PAGE.count("`") == 2 * len(NAMED) + 2
